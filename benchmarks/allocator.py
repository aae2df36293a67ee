"""Measure how fast snapshots are read and replayed through the allocator model, with a profile.

    python benchmarks/allocator.py [SNAPSHOT...] [--steps 20000] [--profile] [--check]

Without files, a run of the model itself is recorded and replayed: random requests on one stream.
Seconds are those of a core, so that other work on the machine counts less; the fastest of five
replays counts. `--check` fails below 200,000 events per second.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import os
import pickle
import pstats
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_snapshot import snapshot
from oomdoctor.memory.allocator_trace import Trace
from oomdoctor.snapshot.reading import read_snapshot
from oomdoctor.snapshot.replay import verify

LEAST = 200_000
REPEATS = 5
MOST_ALIVE = 600


def record(path: Path, steps: int) -> None:
    """Write the snapshot of a random run."""
    dice = random.Random(1)
    cache = Allocator(trace=Trace(steps * 4))
    blocks = []
    for _ in range(steps):
        if len(blocks) < MOST_ALIVE and (not blocks or dice.random() < 0.52):
            blocks.append(cache.alloc(int(2 ** dice.uniform(8, 26))))
        else:
            cache.free(blocks.pop(dice.randrange(len(blocks))))
    path.write_bytes(pickle.dumps(snapshot(cache), protocol=4))


def measure(path: Path, *, profile: bool) -> bool:
    """Print the figures of one snapshot; say whether it is fast enough and replays equally."""
    start = time.process_time()
    read = read_snapshot(str(path))
    reading = time.process_time() - start
    replays = [verify(read) for _ in range(REPEATS)]
    best = max(replays, key=lambda one: one.events_per_second)
    size = path.stat().st_size / 1024**2
    print(
        f"{path.name}: {size:.1f} MiB read in {reading:.2f} s; {best.events:,} events,"
        f" {best.events_per_second:,} per second; equal: {best.equal}",
        flush=True,
    )
    if profile:
        profiler = cProfile.Profile()
        profiler.runcall(verify, read)
        pstats.Stats(profiler).sort_stats("tottime").print_stats(15)
    return best.equal and best.events_per_second >= LEAST


def main() -> int:
    """Measure, print, and with --check fail where it is too slow."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--steps", type=int, default=20_000, help="operations of the own run")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    asked = parser.parse_args()
    gc.set_threshold(1_000_000)  # as the command line does
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        files = asked.files
        if not files:
            files = [Path(folder) / "own.pickle"]
            record(files[0], asked.steps)
        met = [measure(path, profile=asked.profile) for path in files]
    return 1 if asked.check and not all(met) else 0


if __name__ == "__main__":
    sys.exit(main())
