"""Measure how large memory snapshots are read, beside torch's own viewer and pt-snap.

    python benchmarks/snapshots.py [--sizes 200 2050] [--torch-python P] [--pt-snap P]
                                   [--folder DIR] [--write docs/snapshots.md] [--check]

The files are made by `snapshot_files.py` and kept in --folder, if one is named. Seconds are those
of a core, so that other work on the machine counts less; memory is the most that was resident.
Other tools may have `MOST_MIB` of addresses: what needs more is not finished.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.snapshot_files import LEAK_LINE, write

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
MOST_MIB = 6 * 1024
START, END = "<!-- sizes -->\n", "<!-- end of sizes -->"
WITHOUT = "without a compiler: "


class Goal(NamedTuple):
    """The most seconds and MiB that one command may take on a file of one size (in MB)."""

    seconds: float
    mib: int


GOALS = {
    ("report", 200): Goal(20, 700),
    ("top --at end", 2050): Goal(90, 1536),
    ("verify", 2050): Goal(360, 1536),
}


class Cost(NamedTuple):
    """What a command took, and its exit code; ours exits with 1 where it has findings."""

    seconds: float
    mib: float
    code: int
    output: str


class Row(NamedTuple):
    """A line of the table."""

    size: int
    name: str
    cost: Cost
    right: bool


def run(command: list[str], *, most_mib: int | None = None, **settings: str) -> Cost:
    """Run a command and measure it."""
    if most_mib is not None:
        script = f'ulimit -v {most_mib * 1024}; exec "$@"'
        command = ["bash", "-c", script, "-", *command]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | settings,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    seconds, mib = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    return Cost(seconds, mib, process.returncode, text)


def ours(path: Path, size: int, folder: Path) -> list[Row]:
    """Measure the commands of this package; each says whether its answer was the right one."""
    tool = [sys.executable, "-m", "oomdoctor", "snapshot"]
    asked = {
        "report": [*tool, "report", str(path), "-f", "json"],
        "top --at end": [*tool, "top", str(path), "--at", "end", "-f", "json"],
        "verify": [*tool, "verify", str(path), "-f", "json"],
    }
    rows = []
    for name, command in asked.items():
        cost = run(command)
        rows.append(Row(size, f"`{name}`", cost, _right(name, cost.output)))
    if size * 10**6 <= 1 << 30:
        cost = run(asked["report"], PATH=str(folder), CC="none")
        rows.append(Row(size, f"{WITHOUT}`report`", cost, _right("report", cost.output)))
    return rows


def _right(name: str, output: str) -> bool:
    """Say whether the planted leak is the only suspect, or every address is the recorded one."""
    try:
        found = json.loads(output)
    except ValueError:
        return False
    if name == "verify":
        addresses = found["allocations"] == found["same_address"]
        return bool(addresses and found["segment_events"] == found["same_segment_events"])
    if name == "report":
        suspects = found["devices"][0]["leak_suspects"]
        return [one["site"]["frame"]["line"] for one in suspects] == [LEAK_LINE]
    return bool(found["devices"][0]["rows"])


def others(
    path: Path, size: int, folder: Path, viewer: str | None, pt_snap: str | None
) -> list[Row]:
    """Measure torch's viewer and pt-snap, where there are any."""
    rows = []
    if viewer is not None:
        page = str(folder / "plot.html")
        script = [viewer, "-m", "torch.cuda._memory_viz"]
        cost = run([*script, "trace_plot", str(path), "-o", page], most_mib=MOST_MIB)
        rows.append(Row(size, "torch `_memory_viz trace_plot`", cost, cost.code == 0))
    if pt_snap is not None:
        command = [pt_snap, "import", str(path), "--no-focus", "--force", "-o", str(folder / "db")]
        cost = run(command, most_mib=MOST_MIB)
        rows.append(Row(size, "`pt-snap import`", cost, cost.code == 0))
    return rows


def table(rows: list[Row]) -> str:
    """Return the rows as a table of Markdown."""
    head = (
        f"Measured by `benchmarks/snapshots.py` on {platform.machine()}, Python"
        f" {platform.python_version()}, {os.cpu_count()} cores; seconds of one core. Others may"
        f" have {MOST_MIB // 1024} GiB of addresses."
    )
    lines = [
        head,
        "",
        "| File | What | Seconds | Most resident |",
        "|---:|---|---:|---:|",
    ]
    for one in rows:
        cost = one.cost
        figures = (
            f"{cost.seconds:,.1f} | {cost.mib:,.0f} MiB"
            if one.right
            else f"not finished | over {cost.mib:,.0f} MiB"
        )
        lines.append(f"| {one.size:,} MB | {one.name} | {figures} |")
    return "\n".join(lines) + "\n"


def met(row: Row) -> bool:
    """Say whether a row is right and within its goal."""
    goal = GOALS.get((row.name.strip("`"), row.size))
    within = goal is None or (row.cost.seconds <= goal.seconds and row.cost.mib <= goal.mib)
    return row.right and within


def _put(path: Path, text: str) -> None:
    before, _, rest = path.read_text(encoding="utf-8").partition(START)
    _, _, behind = rest.partition(END)
    path.write_text(f"{before}{START}{text}{END}{behind}", encoding="utf-8")


def main() -> int:
    """Measure, print, and with --check fail where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 2050], help="in 10**6 bytes")
    parser.add_argument("--torch-python", help="a Python that has torch")
    parser.add_argument("--pt-snap", help="the command pt-snap")
    parser.add_argument("--folder", type=Path, help="where the files are kept")
    parser.add_argument("--write", type=Path, help="a page whose table is replaced")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    asked = parser.parse_args()
    own, rows = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = asked.folder or Path(name)
        for size in asked.sizes:
            path = folder / f"snapshot-{size}.pickle"
            if not path.exists():
                write(path, size * 10**6)
            here = ours(path, size, Path(name))
            own += here
            rows += here + others(path, size, Path(name), asked.torch_python, asked.pt_snap)
            for one in [row for row in rows if row.size == size]:
                print(one.size, one.name, one.cost[:3], one.right, flush=True)
    text = table(rows)
    print(text)
    if asked.write:
        _put(asked.write, text)
    return 1 if asked.check and not all(map(met, own)) else 0


if __name__ == "__main__":
    sys.exit(main())
