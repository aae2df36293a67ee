"""Measure what a recorder costs: CPU until the command starts, and while it watches.

    python benchmarks/recorder.py [--runs 15] [--seconds 60] [--processes 8] [--check]

CPU time counts (user + system): wall time doubles on a loaded machine. What the hooks add inside a
Python process is measured as the difference of two programs that do nothing.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_START_MS = 100.0
MOST_SHARE = 0.005
SPY = """
import os, resource, sys
sys.argv = ["oomdoctor", "run", "-q", "--no-diagnosis", "true"]
start = os.posix_spawnp
def spy(*arguments, **named):
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, flush=True)
    return start(*arguments, **named)
os.posix_spawnp = spy
from oomdoctor.cli.main import main
main()
"""
RUN = ("-m", "oomdoctor", "run", "-q", "--no-diagnosis")


def environment() -> dict[str, str]:
    """Return the environment in which this checkout runs."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


def until_start_s(folder: str) -> float:
    """Return the CPU seconds of the recorder until it starts the command."""
    done = subprocess.run(
        [sys.executable, "-c", SPY],
        cwd=folder,
        env=environment(),
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.split()[0])


def whole_s(folder: str, *arguments: str) -> float:
    """Return the CPU seconds of a Python program with all its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment(), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def share(folder: str, seconds: float, processes: int) -> float:
    """Return the share of one processor that watching takes, the first seconds left out."""
    script = f"for n in $(seq {processes}); do sleep {seconds + 30:.0f} & done; wait"
    words = [sys.executable, *RUN, "sh", "-c", script]
    with subprocess.Popen(words, cwd=folder, env=environment()) as process:
        time.sleep(10)
        began, used = time.monotonic(), ticks(process.pid)
        time.sleep(seconds)
        found = (ticks(process.pid) - used) / (time.monotonic() - began)
        process.terminate()
    return found


def ticks(pid: int) -> float:
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Print the figures; with --check exit 1 where one is above what is promised."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        start = min(until_start_s(folder) for _ in range(asked.runs))
        plain = min(whole_s(folder, "-c", "pass") for _ in range(asked.runs))
        inside, outside = (
            min(
                whole_s(folder, *RUN, *more, sys.executable, "-c", "pass")
                for _ in range(asked.runs)
            )
            for more in ((), ("--no-inject",))
        )
        watching = share(folder, asked.seconds, asked.processes)
    hooks = inside - outside
    print(f"until the command starts  {1000 * start:6.1f} ms CPU")
    print(
        f"hooks in a process        {1000 * hooks:6.1f} ms CPU (python itself {1000 * plain:.1f})"
    )
    print(f"watching                  {100 * watching:6.2f} % of one processor")
    is_over = 1000 * (start + hooks) > MOST_START_MS or watching > MOST_SHARE
    return 1 if asked.check and is_over else 0


if __name__ == "__main__":
    sys.exit(main())
