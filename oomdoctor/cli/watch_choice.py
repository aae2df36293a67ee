"""Which thing is watched: what was named, or what there is to watch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.cli.watch_sources import BundleSource
from oomdoctor.errors import ProbeError, UsageError
from oomdoctor.recorder.listing import is_recorded
from oomdoctor.recorder.places import PROCESSES, bundle_named, bundles, is_bundle, runs_folder

if TYPE_CHECKING:
    from oomdoctor.cli.watch_sources import Source

_MOST_LISTED = 8
_MOST_LOOKED_AT = 20
NOTHING = "`oomdoctor watch PID` watches a process, `oomdoctor run -- COMMAND` records a run"


def source_for(named: str | None, gpu: int | None, folder: str | None) -> Source:
    """Return what is to be watched; UsageError where there is nothing."""
    runs = runs_folder(folder)
    if named is not None and gpu is not None:
        raise UsageError("give a process or a run, or --gpu, not both")
    if gpu is not None:
        from oomdoctor.cli.watch_live_sources import CardSource

        return CardSource(gpu)
    if named is None:
        return _found(runs)
    if named.isdecimal() and not Path(named).exists():
        return _process(int(named), runs)
    if (Path(named) / PROCESSES).is_dir():  # also one whose run.json is lost
        return BundleSource(Path(named))
    return BundleSource(bundle_named(named, runs))


def _process(pid: int, runs: Path) -> Source:
    """Return the run that records a process, which knows its steps, or else the process."""
    for one in _running(runs):
        if any((one.folder / PROCESSES).glob(f"{pid}-*")):
            return one
    from oomdoctor.cli.watch_live_sources import ProcessSource

    return ProcessSource(pid)


def _found(runs: Path) -> Source:
    """Return the newest run that is being recorded, else the one process that uses a card."""
    running = _running(runs)
    if running:
        return running[0]
    from oomdoctor.cli.watch_live_sources import CardLooks, ProcessSource

    try:
        cards = CardLooks().look()
    except ProbeError:
        cards = ()
    users = {one.pid: one.name for card in cards for one in card.processes}
    if len(users) == 1:
        return ProcessSource(next(iter(users)))
    if users:
        listed = ", ".join(f"{pid} ({name})" for pid, name in list(users.items())[:_MOST_LISTED])
        raise UsageError(
            f"{len(users)} processes use a card: {listed}", hint="name one, or a card with --gpu"
        )
    raise UsageError(
        f"nothing to watch: no run is being recorded in {runs}, and no process uses a card",
        hint=NOTHING,
    )


def _running(runs: Path) -> list[BundleSource]:
    """Return the runs that are being recorded, the newest first."""
    looked_at = (one for one in bundles(runs)[:_MOST_LOOKED_AT] if is_bundle(one))
    return [BundleSource(one) for one in looked_at if is_recorded(one)]
