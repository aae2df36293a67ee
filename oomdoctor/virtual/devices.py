"""Virtual cards as a probe would tell them: who holds how much of each, while a run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.probe.gpu import Device, GpuProcess
from oomdoctor.virtual.usage import read_usage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from oomdoctor.virtual.card import VirtualCard

STRANGER = 4194304
"""The number of the process that plays others on a card, as in csrc/virtual.h; none has it."""


def devices(cards: Sequence[VirtualCard], usage: Path) -> tuple[Device, ...]:
    """Return the cards with their processes, as they are now."""
    found = []
    for number, (card, use) in enumerate(zip(cards, read_usage(usage, len(cards)), strict=True)):
        held = dict(use.held_bytes)
        if card.others_bytes:
            held[STRANGER] = card.others_bytes
        used = min(sum(held.values()), card.total_bytes)
        found.append(
            Device(
                index=number,
                uuid=f"GPU-{number + 1:02x}000000-0000-0000-0000-000000000000",
                name=card.name,
                total_bytes=card.total_bytes,
                used_bytes=used,
                free_bytes=card.total_bytes - used,
                processes=tuple(
                    GpuProcess(pid=pid, name="", bytes=bytes_) for pid, bytes_ in held.items()
                ),
            )
        )
    return tuple(found)
