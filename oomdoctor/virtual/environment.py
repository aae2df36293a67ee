"""The environment variables that put a Python process, and all it starts, on virtual cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.virtual.build import DRIVER, HERE, MONITOR, REST
from oomdoctor.virtual.card import MOST_CARDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from oomdoctor.virtual.card import VirtualCard

PREFIX = "OOMDOCTOR_VIRTUAL_"
HOOKS = HERE / "hooks"
VISIBLE = "CUDA_VISIBLE_DEVICES"
# what a run may find in its own environment, and must not
_OTHERS = ("OTHERS_BYTES", "FAIL_AT", "LOG", "USAGE")


def environment_of(
    cards: Sequence[VirtualCard],
    *,
    libraries: Path,
    log: Path | None = None,
    usage: Path | None = None,
    fail_at: int | None = None,
    base: Mapping[str, str],
) -> dict[str, str]:
    """Return `base` with what the libraries, the loader and torch have to know added to it.

    `log` is the file for what is not modelled, `usage` the one that the processes share; from the
    driver's allocation `fail_at` of a process on, it gets nothing more.
    """
    if not 1 <= len(cards) <= MOST_CARDS:
        raise UsageError(f"a machine has 1 to {MOST_CARDS} virtual cards, not {len(cards)}")
    played = {
        "NAME": _each(cards, lambda one: one.name.replace(";", ",")),
        "COUNT": str(len(cards)),
        "TOTAL_BYTES": _each(cards, lambda one: one.total_bytes),
        "CONTEXT_BYTES": _each(cards, lambda one: one.context_bytes),
        "CAPABILITY": _each(cards, lambda one: f"{one.capability[0]}.{one.capability[1]}"),
        "SM_COUNT": _each(cards, lambda one: one.processors),
    }
    optional = {
        "OTHERS_BYTES": _each(cards, lambda one: one.others_bytes),
        "COMMUNICATOR_BYTES": str(cards[0].pair_bytes),
        "LARGE_COMMUNICATOR_BYTES": str(cards[0].communicator_bytes),
        "FAIL_AT": str(fail_at or 0),
        "LOG": str(log or 0),
        "USAGE": str(usage or 0),
    }
    played.update({name: value for name, value in optional.items() if value != "0"})
    preloaded = [DRIVER, REST, MONITOR, *(path.name for path in libraries.glob("libnvrtc.so.*"))]
    # what is tuned with made-up times must not be found by a run on a real card
    tuned = libraries.with_name(f"{libraries.name}-tuned")
    stale = {PREFIX + name for name in _OTHERS}
    return {
        **{name: value for name, value in base.items() if name not in stale},
        **_visible(base, len(cards)),
        **{PREFIX + name: value for name, value in played.items()},
        "LD_PRELOAD": _joined([str(libraries / name) for name in preloaded], base, "LD_PRELOAD"),
        "LD_LIBRARY_PATH": _joined([str(libraries)], base, "LD_LIBRARY_PATH"),
        "PYTHONPATH": _joined([str(HOOKS)], base, "PYTHONPATH"),
        "TRITON_LIBCUDA_PATH": str(libraries),
        "TRITON_CACHE_DIR": str(tuned / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(tuned / "inductor"),
    }


def _visible(base: Mapping[str, str], count: int) -> dict[str, str]:
    """Let all cards be seen where the variable speaks of real ones that are not among them.

    A login node hides all cards, a batch system names those of a job.
    """
    named = base.get(VISIBLE)
    known = {str(number) for number in range(count)}
    if named is None or {one.strip() for one in named.split(",")} <= known:
        return {}
    return {VISIBLE: ",".join(sorted(known, key=int))}


def _each(cards: Sequence[VirtualCard], part: Callable[[VirtualCard], object]) -> str:
    """Return a part of every card: once where all have the same, else with semicolons."""
    values = [str(part(one)) for one in cards]
    return values[0] if len(set(values)) == 1 else ";".join(values)


def _joined(ours: Iterable[str], base: Mapping[str, str], name: str) -> str:
    before = base.get(name)
    return ":".join((*ours, *([before] if before else [])))
