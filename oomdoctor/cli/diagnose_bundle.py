"""`oomdoctor diagnose` and `collect` on the bundle of a recorded run, with what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.cli.options import codes_of
from oomdoctor.errors import UsageError
from oomdoctor.recorder.places import EVENTS_FILE, PROCESSES, RUN_FILE, SAMPLES_FILE, is_bundle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.cli.diagnose import Asked
    from oomdoctor.model.plan import Diagnosis

_OF_A_DUMP = ("event.json", "memory_summary.txt", "memory_stats.json", "versions.json")


def diagnosed(asked: Asked) -> Diagnosis:
    """Return the diagnosis of a run, with the other inputs and what else is asked for."""
    from oomdoctor.cli.run_end import examined_run
    from oomdoctor.recorder.diagnosing import Wishes

    folder, others = taken_apart(asked["files"])
    return examined_run(
        folder,
        Wishes(
            inputs=others,
            configs=asked["config"],
            facts=asked["fact"],
            rules=asked["rules"],
            preview=asked["preview"],
            select=codes_of(asked["select"]),
            ignore=codes_of(asked["ignore"]),
        ),
    ).diagnosis


def taken_apart(files: Sequence[str]) -> tuple[Path, tuple[str, ...]]:
    """Return the bundle among the inputs, and the other inputs; UsageError where there are two."""
    found = [one for one in files if is_bundle(Path(one))]
    if len(found) > 1:
        listed = ", ".join(found[:3])
        raise UsageError(
            f"{listed}: these are bundles of {len(found)} runs",
            hint="each run is diagnosed alone: give one of them",
        )
    return Path(found[0]), tuple(one for one in files if one not in found)


def shared_files(folder: Path) -> tuple[list[str], list[str]]:
    """Return what of a bundle is shared: its texts, and its configs."""
    from oomdoctor.recorder.bundle import read_bundle
    from oomdoctor.recorder.diagnosing import parts_of

    logs, configs = parts_of(read_bundle(folder))
    texts = [folder / RUN_FILE, *sorted((folder / PROCESSES).glob(f"*/{EVENTS_FILE}"))]
    for name in _OF_A_DUMP:
        texts += sorted((folder / PROCESSES).glob(f"*/oom-*/{name}"))
    texts.append(folder / SAMPLES_FILE)
    known = [str(one) for one in texts if one.is_file() and one.stat().st_size]
    return [*logs, *known], configs
