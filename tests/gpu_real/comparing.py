"""What a script takes on a real card beside a virtual one of its name, compared and written down.

`fixtures/measured/virtual/CARD-torch-VERSION.yaml` has the device, the versions, the day and the
figures of each script. It is written before anything is judged, so that a difference stays there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date
    from pathlib import Path

    from tests.gpu.scripts import Ran

MOST_OFF = 0.001
"""The share by which the allocated peaks may differ."""
HEAD = """\
# Scripts of fixtures/virtual on this card and on a virtual one of the same name, in processes of
# their own: torch.cuda.max_memory_allocated and max_memory_reserved at their ends.
# `pytest -m gpu_real tests/gpu_real` writes this file.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where both runs were, and when."""

    card: str
    capability: tuple[int, int]
    processors: int
    total_bytes: int
    torch: str
    cuda: str
    versions: Mapping[str, str]
    day: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The same script with the same arguments on both cards."""

    script: str
    real: Ran
    virtual: Ran

    @property
    def off(self) -> float:
        """Return by which share of the real card's peak the virtual one's differs."""
        return self.virtual.allocated_bytes / max(self.real.allocated_bytes, 1) - 1

    def faults(self) -> list[str]:
        """Return what is wrong, in sentences."""
        sides = {"the real card": self.real, "the virtual card": self.virtual}
        ended = [
            f"{self.script} on {where} ended as {ran.outcome}:\n{ran.output}"
            for where, ran in sides.items()
            if ran.outcome != "fit" or not ran.allocated_bytes
        ]
        if ended or abs(self.off) <= MOST_OFF:
            return ended
        real, virtual = (f"{one.allocated_bytes:,}" for one in sides.values())
        said = f"{real} bytes are allocated on the real card, {virtual} on the virtual one"
        return [f"{self.script}: {said} ({self.off:+.2%})"]


def file_of(folder: Path, machine: Machine) -> Path:
    """Return the file for a card and a version of torch."""
    name = re.sub(r"[^a-z0-9.]+", "-", f"{machine.card} torch {machine.torch}".lower()).strip("-")
    return folder / f"{name}.yaml"


def write_down(folder: Path, machine: Machine, pair: Pair) -> Path:
    """Put the figures of a script beside those of the others on this card; return the file."""
    path = file_of(folder, machine)
    known: dict[str, Any] = {}
    if path.exists():
        known = yaml.safe_load(path.read_text(encoding="utf-8"))["scripts"]
    known[pair.script] = {
        "date": machine.day.isoformat(),
        "real": _figures(pair.real),
        "virtual": _figures(pair.virtual),
        "allocated_off": round(pair.off, 6),
    }
    values = {
        "schema": 1,
        "card": machine.card,
        "capability": ".".join(map(str, machine.capability)),
        "processors": machine.processors,
        "total_bytes": machine.total_bytes,
        "torch": machine.torch,
        "cuda": machine.cuda,
        "versions": dict(sorted(machine.versions.items())),
        "scripts": dict(sorted(known.items())),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    return path


def _figures(ran: Ran) -> dict[str, object]:
    return {
        "outcome": ran.outcome,
        "allocated_bytes": ran.allocated_bytes,
        "reserved_bytes": ran.reserved_bytes,
    }
