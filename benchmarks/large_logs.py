"""Measure how fast large logs are read, beside grep on the same file in the same run.

    python benchmarks/large_logs.py [--size 1024] [--ranks 64] [--runs 1] [--check] [--only NAME]

Each log is made from a seed; the failure stands in its last line or in the middle. Memory is that
of the process and its children together. With hyperscan both ways of reading are measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PATTERN = "out of memory|OutOfMemory|Killed|RESOURCE_EXHAUSTED"
FAILURE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
BASE_RATIO, FAST_RATIO, MOST_MIB = 4.0, 1.5, 150
MIB = 1024**2
RANK_MIB, RANK_SECONDS, TEXT_SECONDS = 20, 10.0, 2.0
SLOW = "import sys; sys.modules['hyperscan'] = None; from oomdoctor.cli.main import main; main()"

Line = Callable[[random.Random, int], str]


def _trainer(dice: random.Random, at: int) -> str:
    if at % 7 == 0:
        stamp = f"2026-03-04 {at // 3600 % 24:02d}:{at // 60 % 60:02d}:{at % 60:02d}"
        return (
            f"{stamp},000 INFO step={at} throughput={dice.random() * 9e3:.1f} tok/s mem=19.8GiB\n"
        )
    return f"{{'loss': {dice.random() * 3:.4f}, 'grad_norm': {dice.random():.6f}, 'epoch': 0.1}}\n"


def _memory(dice: random.Random, at: int) -> str:
    return (
        f"Step {at} | loss:{dice.random():.4f} memory/max_mem_active:{dice.random() * 40:.2f}"
        f" memory/max_mem_reserved:{dice.random() * 40:.2f} memory allocated: 12.25 GiB\n"
    )


def _deepspeed(dice: random.Random, at: int) -> str:
    return (
        f"[2026-03-04 05:06:{at % 60:02d},123] [INFO] [utils.py:781:see_memory_usage] MA"
        f" {dice.random() * 30:.2f} GB         Max_MA 31.5 GB         CA 32.25 GB\n"
    )


def _json(dice: random.Random, at: int) -> str:
    return (
        f'{{"time":"2026-03-04T05:06:{at % 60:02d}Z","level":"INFO","msg":"step {at}",'
        f'"loss":{dice.random():.4f},"mem_gib":40.1}}\n'
    )


def _serving(dice: random.Random, at: int) -> str:
    return (
        f"INFO 03-04 05:06:{at % 60:02d} [loggers.py:118] Avg prompt throughput:"
        f" {dice.random() * 999:.1f} tokens/s, Running: 4 reqs, GPU KV cache usage: 12.5%\n"
    )


def _bars(dice: random.Random, at: int) -> str:
    return f"\r{at % 101:3d}%|####      | {at}/999999 [01:02<9:59, {dice.random() * 9:.2f}it/s]"


KINDS: dict[str, Line] = {
    "trainer": _trainer,
    "memory": _memory,
    "deepspeed": _deepspeed,
    "json": _json,
    "serving": _serving,
    "one line of bars": _bars,
}
TEXTS: dict[str, Line] = {
    "messages": lambda _, at: f"{FAILURE} ({at})\n",
    "killed": lambda _, __: "Killed\n",
    "tracebacks": lambda _, at: (
        "Traceback (most recent call last):\n"
        f'  File "/job/train.py", line {at}, in step\n    loss.backward()\n{FAILURE}\n'
    ),
    "ranks": lambda _, at: (
        f"[rank{at % 64}]: Traceback (most recent call last):\n"
        f'[rank{at % 64}]:   File "/job/train.py", line {at}, in step\n[rank{at % 64}]: {FAILURE}\n'
    ),
    "one line": lambda _, at: f"word{at} ",
    "kernel": lambda _, at: (
        f"[{at}.25] python invoked oom-killer: gfp_mask=0x1(GFP_KERNEL), order=0, oom_score_adj=0\n"
        f"[{at}.50] [ {at:6d}]  1000 {at:6d} 1234567  456789  3792896  0  0 python\n"
        f"[{at}.75] Out of memory: Killed process {at} (python) total-vm:9kB, anon-rss:8kB\n"
    ),
    "json": _json,
    "tables": lambda _, at: (
        f"|   0  NVIDIA A100  On  | 00000000:07:00.0 Off |    0 |\n"
        f"| N/A   31C    P0    60W / 400W |  {at % 9999:5d}MiB / 40960MiB |   0%   Default |\n"
    ),
}


class Cost(NamedTuple):
    """What one run took: seconds by the clock and of the cores, MiB with its children at most."""

    seconds: float
    cpu: float
    mib: float
    output: str


def write(path: Path, kind: Line, size: int, *, middle: bool) -> int:
    """Write a log of `size` bytes with one failure; return the number of its line."""
    dice = random.Random(20260304)  # noqa: S311 - figures of a log
    block = "".join(kind(dice, at) for at in range(20_000)).encode()
    count = max(2, size // len(block))
    ahead = count // 2 if middle else count
    closing = b"" if block.startswith(b"\r") else b"\n"
    failure = (b"" if closing else b"\r") + FAILURE.encode() + closing
    with path.open("wb") as file:
        for at in range(count):
            if at == ahead:
                file.write(failure)
            file.write(block)
        if not middle:
            file.write(failure)
    return ahead * block.count(b"\n") + 1


def run(command: list[str], *, env: dict[str, str] | None = None) -> Cost:
    """Run a command to its end, and look how much memory it and its children have."""
    before = _cpu_seconds()
    start = time.perf_counter()
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as told,
        subprocess.Popen(command, stdout=told, env=env) as process,
    ):
        most = 0.0
        while process.poll() is None:
            most = max(most, _resident(process.pid))
            time.sleep(0.01)
        seconds = time.perf_counter() - start
        told.seek(0)
        output = told.read()
    return Cost(seconds, _cpu_seconds() - before, most, output)


def _cpu_seconds() -> float:
    """Return the seconds of the cores that all children so far took, with theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resident(number: int) -> float:
    """Return the MiB that a process and all below it have in memory."""
    try:
        status = Path(f"/proc/{number}/status").read_text()
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    except OSError:
        return 0.0
    own = next((line.split()[1] for line in status.split("\n") if line.startswith("VmRSS")), "0")
    return int(own) / 1024 + sum(_resident(int(child)) for child in children)


def tool(*paths: Path, fast: bool) -> list[str]:
    """Return the command line that diagnoses `paths` with or without the extra."""
    start = ["-m", "oomdoctor"] if fast else ["-c", SLOW]
    return [sys.executable, *start, "diagnose", *map(str, paths), "--format", "json"]


def environment() -> dict[str, str]:
    """Return an environment that runs this checkout."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


def grep(path: Path) -> list[str]:
    """Return the command that is the measure."""
    return ["env", "LC_ALL=C", "grep", "-ciE", PATTERN, str(path)]


def found_line(output: str) -> str:
    """Return the lines that the answer quotes, as text."""
    quoted: set[str] = set()

    def walk(one: object) -> None:
        if isinstance(one, dict):
            if FAILURE[:40] in str(one.get("text", "")) and "line" in one:
                quoted.add(str(one["line"]))
            for value in one.values():
                walk(value)
        elif isinstance(one, list):
            for value in one:
                walk(value)

    walk(json.loads(output))
    return ",".join(sorted(quoted))


def large(folder: Path, size: int, *, runs: int, only: str | None) -> list[bool]:
    """Measure every kind of log; return for each goal whether it was met."""
    met: list[bool] = []
    ways = [False, True] if find_spec("hyperscan") else [False]
    for name, kind in KINDS.items():
        for middle in (False, True):
            label = f"{name}, failure {'in the middle' if middle else 'last'}"
            if only is not None and only not in label:
                continue
            path = folder / "large.log"
            line = write(path, kind, size // 2 if kind is _bars else size, middle=middle)
            for fast in ways:
                met += _compare(label, path, line, fast=fast, runs=runs)
            path.unlink()
    return met


def _compare(label: str, path: Path, line: int, *, fast: bool, runs: int) -> list[bool]:
    most = FAST_RATIO if fast else BASE_RATIO
    run(grep(path))  # so that the file is in the page cache for both
    pairs = [(run(grep(path)), run(tool(path, fast=fast), env=environment())) for _ in range(runs)]
    measure, taken = min(one.seconds for one, _ in pairs), min(one.seconds for _, one in pairs)
    cores = [min(pair[at].cpu for pair in pairs) for at in range(2)]
    mib = max(one.mib for _, one in pairs)
    right = str(line) in found_line(pairs[0][1].output).split(",")
    ratio = taken / measure
    goals = [ratio <= most, mib <= MOST_MIB, right]
    print(
        f"{label:<36} {'fast' if fast else 'base'}  grep {measure:5.2f} s  tool {taken:5.2f} s"
        f"  x {ratio:4.2f} (<= {most})  cpu {cores[0]:.2f} and {cores[1]:.2f} s"
        f"  {mib:4.0f} MiB  line {'right' if right else 'WRONG'}"
        f"  {'pass' if all(goals) else 'FAIL'}",
        flush=True,
    )
    return goals


def many(folder: Path, ranks: int) -> list[bool]:
    """Measure a folder with one log of 20 MiB for each rank."""
    logs = folder / "ranks"
    logs.mkdir()
    for rank in range(ranks):
        write(logs / f"rank{rank}.log", _trainer, RANK_MIB * MIB, middle=False)
    cost = run(tool(logs, fast=False), env=environment())
    met = cost.seconds <= RANK_SECONDS * ranks / 64
    print(
        f"{ranks} ranks of {RANK_MIB} MiB: {cost.seconds:.2f} s, cpu {cost.cpu:.2f} s,"
        f" {cost.mib:.0f} MiB",
        flush=True,
    )
    return [met]


def texts(folder: Path) -> list[bool]:
    """Measure 1 MiB of texts that could be slow to read."""
    met = []
    dice = random.Random(7)  # noqa: S311 - figures of a log
    for name, kind in TEXTS.items():
        path = folder / "text.log"
        text = "".join(kind(dice, at) for at in range(MIB // len(kind(dice, 1)) + 1))
        path.write_text(text[:MIB], encoding="utf-8")
        cost = run(tool(path, fast=False), env=environment())
        met.append(cost.seconds <= TEXT_SECONDS)
        print(
            f"1 MiB of {name:<12} {cost.seconds:5.2f} s, cpu {cost.cpu:5.2f} s"
            f"  {'pass' if met[-1] else 'FAIL'}",
            flush=True,
        )
    return met


def main() -> int:
    """Measure, print, and with --check fail where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=1024, help="MiB of a large log")
    parser.add_argument("--ranks", type=int, default=64, help="how many logs of ranks, 0 for none")
    parser.add_argument("--runs", type=int, default=1, help="runs of each, the fastest counts")
    parser.add_argument("--only", help="a part of the kind's name")
    parser.add_argument("--folder", help="where the logs are made for a while")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    asked = parser.parse_args()
    met: list[bool] = []
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder = Path(name)
        if asked.size:
            met += large(folder, asked.size * MIB, runs=asked.runs, only=asked.only)
        if asked.ranks:
            met += many(folder, asked.ranks)
        if asked.only is None:
            met += texts(folder)
    return 1 if asked.check and not all(met) else 0


if __name__ == "__main__":
    sys.exit(main())
