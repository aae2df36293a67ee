"""Measure how long training scripts take on virtual cards, and what they hold on the host.

    python benchmarks/virtual.py --python CUDA_VENV/bin/python [--only TEXT] [--check]

Each script of `fixtures/virtual` runs once, in fresh processes. The goals are for a machine with
two free cores; where others use them too, CPU time tells more than the clock: a goal is kept if
either the clock or the CPU time on all cores keeps it. `--check` fails where a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oomdoctor.virtual.card import card_named
from oomdoctor.virtual.run import virtual_environment

ROOT = Path(__file__).resolve().parents[1]
GIB = 1 << 30
CARD = "NVIDIA A100-SXM4-80GB"
CORES = 2
LOOK_SECONDS = 0.5
STEP = re.compile(r"step \d+: .*, ([0-9.]+) s, ([0-9.]+) s of CPU time")


class Goal(NamedTuple):
    """A script, its ranks, and the most that it may take; `step` is for one step alone."""

    name: str
    script: str
    ranks: int
    seconds: float
    resident: int | None = None
    step: bool = False


GOALS = (
    Goal("a step of 1B", "loop_1b.py", 1, 0.2, step=True),
    Goal("LoRA on 7B", "lora_7b.py", 1, 60, 6 * GIB),
    Goal("QLoRA on 70B, 8 cards", "qlora_70b.py", 8, 600),
)


class Cost(NamedTuple):
    """What a run took; of a step, its own seconds."""

    wall: float
    cpu: float
    resident: int
    ended: bool


def run(goal: Goal, python: str) -> Cost:
    """Run a script on virtual cards."""
    script = str(ROOT / "fixtures" / "virtual" / goal.script)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(goal.ranks)]
    words = [script] if goal.ranks == 1 else [*launcher, script]
    environment = virtual_environment(card_named(CARD), count=goal.ranks, python=python)
    environment |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        with subprocess.Popen(
            [python, *words], cwd=folder, env=environment, stdout=output, stderr=output
        ) as process:
            resident = watch(process)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if process.returncode:
        print(text[-2000:])
    if goal.step:
        # the first steps load kernels
        steps = [(float(one), float(two)) for one, two in STEP.findall(text)][2:]
        wall, cpu = min(steps, default=(float("inf"), float("inf")))
        return Cost(wall, cpu, resident, process.returncode == 0)
    return Cost(time.monotonic() - began, cpu, resident, process.returncode == 0)


def watch(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process; return the most that it and what it started held together."""
    most = 0
    while process.poll() is None:
        held = 0
        try:
            own = psutil.Process(process.pid)
            for one in (own, *own.children(recursive=True)):
                held += one.memory_info().rss
        except psutil.Error:  # it ended between two looks
            pass
        most = max(most, held)
        time.sleep(LOOK_SECONDS)
    return most


def report(goal: Goal, cost: Cost) -> bool:
    """Print what a script took, and say whether it keeps its goal."""
    cores = min(CORES, goal.ranks)
    met = (
        cost.ended
        and min(cost.wall, cost.cpu / cores) <= goal.seconds
        and (goal.resident is None or cost.resident <= goal.resident)
    )
    room = "" if goal.resident is None else f" of {goal.resident / GIB:.0f}"
    print(
        f"{goal.name:<22} wall {cost.wall:7.2f} s   cpu {cost.cpu:7.2f} s   "
        f"goal {goal.seconds:5g} s   resident {cost.resident / GIB:.1f}{room} GiB   "
        f"{'pass' if met else 'FAIL'}",
        flush=True,
    )
    return met


def main() -> int:
    """Measure, print, and with --check fail where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="the one with CUDA's torch")
    parser.add_argument("--only", default="")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    asked = parser.parse_args()
    met = []
    for goal in GOALS:
        if asked.only in goal.name:
            load = os.getloadavg()[0]
            met.append(report(goal, run(goal, asked.python)))
            print(f"  load before {load:.1f} on {os.cpu_count()} cores")
    return 1 if asked.check and not all(met) else 0


if __name__ == "__main__":
    sys.exit(main())
