"""Our model against recorded runs of torch's own C++ allocator (tools/record_allocator.py)."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_driver import Card
from oomdoctor.memory.allocator_oom import OutOfMemoryError, RejectedError
from oomdoctor.memory.allocator_snapshot import segments

FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "allocator"
RECORDED = sorted(FOLDER.glob("*.json.xz"))
FIRST_ADDRESS = 0x100000000000


class Replay:
    """Does recorded operations with the model."""

    def __init__(self, record: dict[str, Any]) -> None:
        """Start with the recorded settings and an empty card."""
        card = Card(record["capacity"], first_address=FIRST_ADDRESS)
        self.allocator = Allocator(record["settings"], driver=card)
        self.blocks: dict[int, Any] = {}
        self.made = 0
        self.pool = (0, 0)

    def alloc(self, size: int, stream: int) -> tuple[str, int]:
        number, self.made = self.made, self.made + 1
        try:
            block = self.allocator.alloc(size, stream)
        except RejectedError:
            return "rejected", 0
        except OutOfMemoryError:
            return "oom", 0
        self.blocks[number] = block
        return "alloc", block.address

    def step(self, what: str, which: int, stream: int) -> tuple[str, int]:
        allocator = self.allocator
        match what:
            case "alloc" | "oom" | "rejected":
                return self.alloc(which, stream)
            case "free":
                allocator.free(self.blocks.pop(which))
            case "use":
                allocator.record_stream(self.blocks[which], stream)
            case "empty_cache":
                allocator.empty_cache()
            case "make_pool":
                self.pool = (0, self.pool[1] + 1)
                allocator.create_pool(self.pool)
            case "begin_pool":
                allocator.begin_pool(self.pool)
            case "end_pool":
                allocator.end_pool(self.pool)
                allocator.release_pool(self.pool)
            case "drop_pool":
                allocator.release_pool(self.pool)
                allocator.empty_cache(self.pool)
        return what, 0


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.partition(".")[0])
def test_every_operation_has_the_recorded_outcome(path: Path) -> None:
    record = json.loads(lzma.decompress(path.read_bytes()))
    replay = Replay(record)

    for at, row in enumerate(zip(*record["columns"].values(), strict=True)):
        what, which, stream, *expected = row
        outcome, address = replay.step(what, which, stream)
        allocator = replay.allocator
        actual = [address, allocator.allocated, allocator.reserved]
        assert (at, what, expected) == (at, outcome, actual)

    assert record["stats"] == replay.allocator.memory_stats()
    layout = [
        [
            [one["address"], one["total_size"], one["stream"], one["segment_type"]],
            [[b["address"], b["size"], b["requested_size"], b["state"]] for b in one["blocks"]],
        ]
        for one in segments(replay.allocator)
    ]
    assert record["segments"] == layout


def test_the_recordings_are_there() -> None:
    assert len(RECORDED) >= 15
