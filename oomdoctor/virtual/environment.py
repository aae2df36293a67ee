"""The environment variables that put a Python process, and all it starts, on virtual cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.virtual.build import DRIVER, HERE, MONITOR, REST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from oomdoctor.virtual.card import VirtualCard

PREFIX = "OOMDOCTOR_VIRTUAL_"
MOST_CARDS = 16
HOOKS = HERE / "hooks"


def environment_of(
    card: VirtualCard,
    *,
    libraries: Path,
    count: int = 1,
    log: Path | None = None,
    base: Mapping[str, str],
) -> dict[str, str]:
    """Return `base` with what the libraries, the loader and torch have to know added to it."""
    if not 1 <= count <= MOST_CARDS:
        raise UsageError(f"a machine has 1 to {MOST_CARDS} virtual cards, not {count}")
    major, minor = card.capability
    played = {
        "NAME": card.name,
        "COUNT": str(count),
        "TOTAL_BYTES": str(card.total_bytes),
        "CONTEXT_BYTES": str(card.context_bytes),
        "CAPABILITY": f"{major}.{minor}",
        "SM_COUNT": str(card.processors),
    }
    if log is not None:
        played["LOG"] = str(log)
    preloaded = [DRIVER, REST, MONITOR, *(path.name for path in libraries.glob("libnvrtc.so.*"))]
    # what is tuned with made-up times must not be found by a run on a real card
    tuned = libraries.with_name(f"{libraries.name}-tuned")
    return {
        **base,
        **{PREFIX + name: value for name, value in played.items()},
        "LD_PRELOAD": _joined([str(libraries / name) for name in preloaded], base, "LD_PRELOAD"),
        "LD_LIBRARY_PATH": _joined([str(libraries)], base, "LD_LIBRARY_PATH"),
        "PYTHONPATH": _joined([str(HOOKS)], base, "PYTHONPATH"),
        "TRITON_LIBCUDA_PATH": str(libraries),
        "TRITON_CACHE_DIR": str(tuned / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(tuned / "inductor"),
    }


def _joined(ours: Iterable[str], base: Mapping[str, str], name: str) -> str:
    before = base.get(name)
    return ":".join((*ours, *([before] if before else [])))
