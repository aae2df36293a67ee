"""What the processes of a run hold of the virtual cards, read from outside while they run.

The library keeps it in a file that its processes share (csrc/usage.c has the same layout):

    owner of the lock, allocations that did not fit for each card, unused     int32
    highest use of each card                                                  uint64
    512 processes: pid, bytes of each card                                    int64, uint64
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_CARDS = 16
MOST_PROCESSES = 512
_HEAD = struct.Struct(f"<i{MOST_CARDS}ii{MOST_CARDS}Q")
_PROCESS = struct.Struct(f"<q{MOST_CARDS}Q")
SIZE = _HEAD.size + MOST_PROCESSES * _PROCESS.size


@dataclass(frozen=True, slots=True, kw_only=True)
class CardUsage:
    """One card of the machine: its highest use so far (contexts and strangers with it) and who.

    `held_bytes` has what each process holds; `refused` counts the driver's allocations that did not
    fit.
    """

    peak_bytes: int
    refused: int
    held_bytes: Mapping[int, int]


def read_usage(path: Path, count: int) -> tuple[CardUsage, ...]:
    """Return the first `count` cards; all zero while no process used one."""
    try:
        data = path.read_bytes()
    except OSError:
        data = b""
    if len(data) < SIZE:
        data = bytes(SIZE)
    head = _HEAD.unpack_from(data)
    refused, peaks = head[1 : 1 + MOST_CARDS], head[2 + MOST_CARDS :]
    entries = _PROCESS.iter_unpack(data[_HEAD.size : SIZE])
    # one that ended without its exit handlers still stands there
    processes = [one for one in entries if one[0] and Path(f"/proc/{one[0]}").exists()]
    return tuple(
        CardUsage(
            peak_bytes=peaks[card],
            refused=refused[card],
            held_bytes={one[0]: one[1 + card] for one in processes if one[1 + card]},
        )
        for card in range(count)
    )
