"""Measure what an estimate costs: seconds and memory of the whole command, from a cold process.

    python benchmarks/estimate.py [--python PYTHON] [--runs 3] [--only TEXT] [--check]

`--python` is an interpreter with torch, transformers, peft and bitsandbytes (without it: this one).
Wall seconds are compared, and for the formula the seconds of a core; the fastest run counts, since
others may use the machine (its load is printed). Memory is the largest resident size of every
process of the command, added up, and the worst run counts. An answer by another engine than the
one that was asked for misses its goal. `--check` fails where a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
LOOK_SECONDS = 0.02
SEVEN = ("--model", "meta-llama/Llama-2-7b-hf", "--seq", "2048", "--batch", "1")
SEVENTY = ("--model", "meta-llama/Llama-2-70b-hf", "--seq", "2048", "--batch", "1")
TINY = ("--model", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "--seq", "2048")
LORA = ("--method", "lora", "--lora-r", "8", "--lora-targets", "q_proj,v_proj")
CARD = ("--gpu", "24GiB")
AXES = ("--batches", "1,2,4,8,16,32,64,128", "--lengths", "256,512,768,1024,1536,2048,3072,4096")
RESIDENT = 700 * MIB


class Goal(NamedTuple):
    """A command, and what it may take; `cpu` says that seconds of a core are meant."""

    name: str
    arguments: tuple[str, ...]
    seconds: float | None
    engine: str = "simulate"
    cpu: bool = False
    cells: int = 0


GOALS = (
    Goal("7B LoRA, 1 x 2,048", (*SEVEN, *LORA, *CARD), 15),
    Goal("7B LoRA, ten usual cards", (*SEVEN, *LORA), 15),
    Goal("70B LoRA with limits", (*SEVENTY, *LORA, "--gpu", "H200"), 45),
    Goal("7B LoRA, table of 8 x 8", (*SEVEN, *LORA, *CARD, "--table", *AXES), 60, cells=64),
    Goal("1.1B, states of 8 bits", (*TINY, *CARD, "--optimizer", "adamw_8bit"), None),
    Goal("1.1B, paged states", (*TINY, *CARD, "--optimizer", "paged_adamw_8bit"), None),
    Goal("1.1B, recomputing", (*TINY, *CARD, "--checkpointing"), None),
    Goal("7B QLoRA", (*SEVEN, *CARD, "--method", "qlora", "--checkpointing"), None),
    Goal("7B, paged states", (*SEVEN, *CARD, "--optimizer", "paged_adamw_32bit"), None),
    Goal(
        "7B LoRA by formula",
        (*SEVEN, *LORA, *CARD, "--engine", "formula"),
        0.2,
        engine="formula",
        cpu=True,
    ),
)


class Cost(NamedTuple):
    """What one run took, and whether the wanted engine answered in full."""

    wall: float
    cpu: float
    resident: int
    answered: bool


def environment() -> dict[str, str]:
    """Return an environment that runs this checkout, with compiled modules as after installing."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": str(ROOT)}


def run(goal: Goal, python: str) -> Cost:
    """Run a command once, and watch it and what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with tempfile.TemporaryFile() as answer:
        process = subprocess.Popen(
            [python, "-m", "oomdoctor", "estimate", *goal.arguments, "-f", "json", "-q"],
            stdin=subprocess.DEVNULL,
            stdout=answer,
            env=environment(),
        )
        resident = watch(process)
        wall = time.perf_counter() - start
        answer.seek(0)
        text = answer.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu, resident, process.returncode == 0 and is_whole(goal, text))


def is_whole(goal: Goal, text: bytes) -> bool:
    """Say whether an answer is that of the engine that was asked for, with its table."""
    said = json.loads(text)
    cells = len((said["table"] or {}).get("cells", ()))
    return bool(said["engine"] == goal.engine) and cells >= goal.cells


def watch(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process; return the largest resident sizes of it and of what it started."""
    largest: dict[int, int] = {}
    while process.poll() is None:
        try:
            own = psutil.Process(process.pid)
            for one in (own, *own.children(recursive=True)):
                largest[one.pid] = max(largest.get(one.pid, 0), one.memory_info().rss)
        except psutil.Error:  # it ended between two looks
            pass
        time.sleep(LOOK_SECONDS)
    return sum(largest.values())


def report(goal: Goal, costs: list[Cost]) -> bool:
    """Print what a command took, and say whether it keeps its goal."""
    wall, cpu = min(one.wall for one in costs), min(one.cpu for one in costs)
    resident = max(one.resident for one in costs)
    taken = cpu if goal.cpu else wall
    met = (
        all(one.answered for one in costs)
        and (goal.seconds is None or taken <= goal.seconds)
        and resident <= RESIDENT
    )
    of = "-" if goal.seconds is None else f"{goal.seconds:g} s{' cpu' if goal.cpu else ''}"
    print(
        f"{goal.name:<26} wall {wall:6.2f} s   cpu {cpu:6.2f} s   goal {of:>9}   "
        f"resident {resident / MIB:4.0f} of {RESIDENT / MIB:.0f} MiB   {'pass' if met else 'FAIL'}"
    )
    return met


def main() -> int:
    """Measure, print, and with --check fail where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    asked = parser.parse_args()
    met = []
    for goal in GOALS:
        if asked.only in goal.name:
            load, cores = os.getloadavg()[0], os.cpu_count()
            met.append(report(goal, [run(goal, asked.python) for _ in range(asked.runs)]))
            print(f"  load before {load:.1f} on {cores} cores")
    return 1 if asked.check and not all(met) else 0


if __name__ == "__main__":
    sys.exit(main())
