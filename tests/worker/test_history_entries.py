"""A history of torch's allocator becomes a stream, with the moments that were heard between."""

from __future__ import annotations

from typing import Any

from oomdoctor.memory.stream import Mark
from oomdoctor.worker.history.entries import Entries

HEARD = [("", ""), ("phase", "load"), ("phase", "step 1"), ("part", "forward"), ("empty-cache", "")]


def entry(action: str, moment: int, address: int = 0, size: int = 0) -> dict[str, Any]:
    return {
        "action": action,
        "addr": address,
        "size": size,
        "stream": 0,
        "user_metadata": str(moment) if moment else "",
    }


def told(*entries: dict[str, Any]) -> Entries:
    made = Entries(HEARD)
    for one in entries:
        made.take(one)
    return made


def test_allocations_are_numbered_and_freed_by_their_numbers() -> None:
    made = told(
        entry("alloc", 1, 0x1000, 100),
        entry("alloc", 1, 0x2000, 200),
        entry("free_requested", 1, 0x1000),
        entry("free_completed", 1, 0x1000),
        entry("alloc", 1, 0x1000, 50),
        entry("free_completed", 1, 0x1000),
    )

    assert made.events == [0, 1, ~0, 2, ~2]
    assert [one.size for one in made.allocations] == [100, 200, 50]


def test_moments_stand_between_the_events() -> None:
    made = told(
        entry("alloc", 1, 0x1000, 1), entry("alloc", 3, 0x2000, 2), entry("alloc", 4, 0x3000, 3)
    )

    assert made.marks == [
        Mark(0, "phase", "load"),
        Mark(1, "phase", "step 1"),
        Mark(1, "part", "forward"),
        Mark(2, "empty-cache"),
    ]
    assert [(one.phase, one.part) for one in made.allocations] == [
        ("load", ""),
        ("step 1", "forward"),
        ("step 1", "forward"),
    ]


def test_segments_are_counted() -> None:
    made = told(entry("segment_alloc", 1), entry("segment_alloc", 1), entry("segment_free", 2))

    assert made.segments == {
        "segment_alloc": 2,
        "segment_free": 1,
        "segment_map": 0,
        "segment_unmap": 0,
    }
