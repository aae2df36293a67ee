"""Measure what a start costs, as a ratio to importing click alone.

    python benchmarks/start_up.py [--runs 25] [--check] [--imports]

CPU time of the child process (user + system, from getrusage) is what counts: wall time doubles on
a loaded machine, CPU time does not. The minimum of all runs is compared, the median is shown.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BASELINE = ("-c", "import click")
LOG = """\
Traceback (most recent call last):
  File "train.py", line 12, in <module>
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total \
capacity of 23.64 GiB of which 412.19 MiB is free. Including non-PyTorch memory, this process has \
23.23 GiB memory in use. Of the allocated memory 22.51 GiB is allocated by PyTorch, and 271.05 MiB \
is reserved by PyTorch but unallocated.
"""
CONFIG = """\
base_model: meta-llama/Llama-3.1-8B-Instruct
load_in_4bit: true
adapter: qlora
datasets:
  - path: data/notes.jsonl
    type: chat_template
sequence_len: 4096
sample_packing: true
lora_r: 32
lora_alpha: 16
lora_target_linear: true
gradient_accumulation_steps: 4
micro_batch_size: 2
num_epochs: 3
optimizer: adamw_bnb_8bit
lr_scheduler: cosine
learning_rate: 0.0002
warmup_ratio: 0.1
bf16: auto
gradient_checkpointing: true
evals_per_epoch: 4
val_set_size: 0.05
output_dir: out
"""
SPY = """
import sys
from oomdoctor.cli.main import run
run(sys.argv[1:])
print(*sorted(m for m in sys.modules if not m.startswith("_")), sep="\\n", file=sys.stderr)
"""


class Goal(NamedTuple):
    """A command line, and how many times the baseline it may cost."""

    name: str
    arguments: tuple[str, ...]
    most: float


class Cost(NamedTuple):
    """What one child process took, in milliseconds."""

    cpu_ms: float
    wall_ms: float


def goals(log: str, config: str) -> list[Goal]:
    """Return the commands that are measured."""
    return [
        Goal("--help", ("--help",), 1.5),
        Goal("diagnose", ("diagnose", log), 3.0),
        Goal("diagnose --format json", ("diagnose", log, "--format", "json"), 3.0),
        Goal("lint", ("lint", config), 6.0),
        Goal("lint --format json", ("lint", config, "--format", "json"), 6.0),
    ]


def environment() -> dict[str, str]:
    """Return an environment that runs this checkout, with compiled modules as after installing."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": str(ROOT)}


def run_child(arguments: tuple[str, ...]) -> Cost:
    """Run this interpreter once and return what the child took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cpu * 1000, wall * 1000)


def measure(commands: list[tuple[str, ...]], *, runs: int) -> list[list[Cost]]:
    """Run the commands in turns, so that a change of load meets all of them."""
    for arguments in commands:
        run_child(arguments)
    costs: list[list[Cost]] = [[] for _ in commands]
    for _ in range(runs):
        for at, arguments in enumerate(commands):
            costs[at].append(run_child(arguments))
    return costs


def report(name: str, costs: list[Cost], baseline: list[Cost]) -> float:
    """Print one line; return the ratio of the smallest CPU times."""
    cpu, wall = [one.cpu_ms for one in costs], [one.wall_ms for one in costs]
    ratio = min(cpu) / min(one.cpu_ms for one in baseline)
    print(
        f"{name:<24} cpu min {min(cpu):6.1f} median {statistics.median(cpu):6.1f} ms   "
        f"wall min {min(wall):6.1f} median {statistics.median(wall):6.1f} ms   x {ratio:.2f}"
    )
    return ratio


def print_imports(goal: Goal) -> None:
    """Print the modules that a command loads."""
    done = subprocess.run(
        [sys.executable, "-c", SPY, *goal.arguments],
        check=False,
        capture_output=True,
        text=True,
        env=environment(),
    )
    modules = done.stderr.splitlines()
    ours = [name for name in modules if name.startswith("oomdoctor")]
    print(f"\n{goal.name}: {len(modules)} modules, {len(ours)} of ours")
    print("  " + " ".join(modules))


def main() -> int:
    """Measure, print, and with --check fail where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    parser.add_argument("--imports", action="store_true", help="list what each command loads")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "crash.log"
        log.write_text(LOG, encoding="utf-8")
        config = Path(folder) / "train.yaml"
        config.write_text(CONFIG, encoding="utf-8")
        wanted = goals(str(log), str(config))
        commands = [BASELINE, *(("-m", "oomdoctor", *goal.arguments) for goal in wanted)]
        baseline, *costs = measure(commands, runs=asked.runs)
        report("import click", baseline, baseline)
        met = []
        for goal, taken in zip(wanted, costs, strict=True):
            met.append(report(goal.name, taken, baseline) <= goal.most)
            print(f"  goal <= {goal.most} x: {'pass' if met[-1] else 'FAIL'}")
        for goal in wanted if asked.imports else ():
            print_imports(goal)
    return 1 if asked.check and not all(met) else 0


if __name__ == "__main__":
    sys.exit(main())
