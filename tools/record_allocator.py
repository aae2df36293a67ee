"""Record what torch's own caching allocator does with random operations.

    python tools/record_allocator.py OUT.json.xz 'max_split_size_mb:64' [--seed 1] [--streams 2]

Needs a CUDA build of torch, on a driver whose capacity is `--capacity` MiB and that hands out
addresses one after the other in steps of 2 MiB; a stub of the driver does, and no kernel is run.
Each operation is written with what came of it: the address, and allocated and reserved bytes after
it. `tests/unit/memory/test_allocator_recorded.py` lets our model do the same operations.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
from pathlib import Path
from typing import Any

MOST_ALIVE = 400


class Recorder:
    """Does random operations and writes them down, column by column."""

    def __init__(self, torch: Any, asked: argparse.Namespace) -> None:
        """Make the streams."""
        self.torch = torch
        self.dice = random.Random(asked.seed)
        self.asked = asked
        self.streams = [torch.cuda.default_stream()]
        self.streams += [torch.cuda.Stream() for _ in range(asked.streams - 1)]
        self.alive: dict[int, Any] = {}
        self.made = 0
        self.pool: Any = None
        self.inside: Any = None
        self.columns: dict[str, list[Any]] = {
            name: [] for name in ("what", "which", "stream", "address", "allocated", "reserved")
        }

    def note(self, what: str, which: int = 0, stream: int = 0, address: int = 0) -> None:
        """Write an operation down, and the figures after it."""
        cuda = self.torch.cuda
        row = (what, which, stream, address, cuda.memory_allocated(), cuda.memory_reserved())
        for column, value in zip(self.columns.values(), row, strict=True):
            column.append(value)

    def size(self) -> int:
        """Return a size: half of them small, some of hundreds of MiB."""
        share = self.dice.random()
        low, high = 0.0, 20.0
        for limit, *bounds in ((0.02, 28, 31), (0.3, 23, 29), (0.6, 20, 24)):
            if share < limit:
                low, high = bounds
                break
        return max(1, int(2 ** self.dice.uniform(low, high)))

    def alloc(self) -> None:
        """Allocate on a random stream."""
        size, stream = self.size(), self.dice.choice(self.streams)
        cuda, number = self.torch.cuda, self.made
        self.made += 1
        try:
            with cuda.stream(stream):
                made = self.torch.empty(size, dtype=self.torch.uint8, device="cuda")
        except cuda.OutOfMemoryError as error:
            what = "rejected" if "preemptively" in str(error) else "oom"
            self.note(what, size, stream.cuda_stream)
            return
        self.alive[number] = made
        self.note("alloc", size, stream.cuda_stream, made.data_ptr())

    def free(self) -> None:
        """Free a random tensor."""
        number = self.dice.choice(list(self.alive))
        del self.alive[number]
        self.note("free", number)

    def use(self) -> None:
        """Let another stream use a random tensor."""
        number, stream = self.dice.choice(list(self.alive)), self.dice.choice(self.streams)
        self.alive[number].record_stream(stream)
        self.note("use", number, stream.cuda_stream)

    def switch_pool(self) -> None:
        """Begin or end to allocate from a private pool, or let it go."""
        cuda = self.torch.cuda
        if self.inside is not None:
            self.inside.__exit__(None, None, None)
            self.inside = None
            self.note("end_pool")
        elif self.pool is not None and self.dice.random() < 0.3:
            self.pool = None
            self.note("drop_pool")
        else:
            if self.pool is None:
                self.pool = cuda.MemPool()
                self.note("make_pool")
            self.inside = cuda.use_mem_pool(self.pool)
            self.inside.__enter__()
            self.note("begin_pool")

    def step(self) -> None:
        """Do one operation."""
        share = self.dice.random()
        if share < 0.004:
            self.torch.cuda.empty_cache()
            self.note("empty_cache")
        elif self.asked.pools and share < 0.02:
            self.switch_pool()
        elif self.alive and self.asked.streams > 1 and share < 0.06:
            self.use()
        elif not self.alive or (share < 0.56 and len(self.alive) < MOST_ALIVE):
            self.alloc()
        else:
            self.free()

    def result(self) -> dict[str, Any]:
        """Return all that was recorded, with all figures and segments at the end."""
        cuda = self.torch.cuda
        segments = [
            [
                [one[key] for key in ("address", "total_size", "stream", "segment_type")],
                [[b["address"], b["size"], b["requested_size"], b["state"]] for b in one["blocks"]],
            ]
            for one in cuda.memory._snapshot()["segments"]
        ]
        return {
            "torch": self.torch.__version__,
            "settings": self.asked.settings,
            "capacity": self.asked.capacity << 20,
            "columns": self.columns,
            "stats": dict(cuda.memory_stats()),
            "segments": segments,
        }


def main() -> None:
    """Record one run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("settings", nargs="?", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--pools", action="store_true", help="use a private pool now and then")
    parser.add_argument("--operations", type=int, default=3000)
    parser.add_argument("--capacity", type=int, default=8000, help="MiB of the card")
    asked = parser.parse_args()
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = asked.settings
    import torch

    torch.cuda.init()
    recorder = Recorder(torch, asked)
    for _ in range(asked.operations):
        recorder.step()
    text = json.dumps(recorder.result(), separators=(",", ":"))
    asked.out.write_bytes(lzma.compress(text.encode(), preset=9))
    ooms = recorder.columns["what"].count("oom")
    print(
        f"{asked.out}: {asked.settings or 'defaults'}, {ooms} OOMs, {len(text) >> 10} KiB of JSON"
    )


if __name__ == "__main__":
    main()
