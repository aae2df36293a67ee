"""Compare searches for the largest batch or length that fits, on 400 simulated jobs.

    python benchmarks/search.py [--python PYTHON] [--write] [--check]

Ours searches with an estimate (whose error is a few percent), without one, and without even knowing
what the card has; a plain bisection over the range is the yardstick. `--python` is an interpreter
with torch, accelerate, lightning and batch-probe, whose own code then searches too; without it what
they found is read from `benchmarks/search.json`. `--write` stores the results there, and lays the
table of `docs/bisect.md` out anew. `--check` fails where a goal is missed, or where a result is not
the one that is stored.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.search_jobs import JOBS, VALUES, SimulatedJob, jobs
from oomdoctor.search.edge import find_edge
from oomdoctor.search.rounds import run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.search_jobs import Trials

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "benchmarks" / "search.json"
PAGE = ROOT / "docs" / "bisect.md"
START, END = "<!-- searches -->", "<!-- end of searches -->"
WITH_ESTIMATE = "oomdoctor, with an estimate"
WITHOUT_ESTIMATE = "oomdoctor, without one"
WITHOUT_CAP = "oomdoctor, without an estimate or the card's size"
BISECTION = "plain bisection"
FLOORS = 0.2
ON_FLOORS = {WITH_ESTIMATE: "floors, with an estimate", WITHOUT_ESTIMATE: "floors, without one"}
GOALS = {WITH_ESTIMATE: 4, WITHOUT_ESTIMATE: 6}


def ours(job: SimulatedJob, *, estimate: bool, cap: bool = True) -> tuple[int, Trials]:
    """Return what our search answers for a job, in steps of its axis, and its trials."""
    trials = job.trials()
    search = find_edge(
        job.axis,
        cap_bytes=job.told_bytes if cap else None,
        estimate=job.estimate if estimate else None,
    )
    answer = run(search, lambda ask: trials.run(int(ask.values[job.axis.name]) // job.axis.step))
    return round((answer.bracket.fits_at or 0) / job.axis.step), trials


def bisection(job: SimulatedJob) -> tuple[int, Trials]:
    """Return what halving the range answers, each value tried once."""
    trials = job.trials()
    low, high = 0, VALUES + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if trials.fits(middle) else (low, middle)
    return low, trials


OURS: Mapping[str, Callable[[SimulatedJob], tuple[int, Trials]]] = {
    WITH_ESTIMATE: lambda job: ours(job, estimate=True),
    WITHOUT_ESTIMATE: lambda job: ours(job, estimate=False),
    WITHOUT_CAP: lambda job: ours(job, estimate=False, cap=False),
    BISECTION: bisection,
}


def summary(rows: Sequence[tuple[SimulatedJob, int, Sequence[tuple[int, bool]]]]) -> dict[str, Any]:
    """Return how well a search did: what it answered, what it showed, what it took."""
    counts = sorted(len(made) for _, _, made in rows)
    failed = [sum(not fits for _, fits in made) for _, _, made in rows]
    return {
        "right": sum(_right(job, answer) for job, answer, _ in rows),
        "brackets": sum(_right(job, one) and _shown(one, made) for job, one, made in rows),
        "fitted_twice": sum(
            _right(job, one) and _shown(one, made, times=2) for job, one, made in rows
        ),
        "trials_median": statistics.median(counts),
        "trials_p95": counts[-(-len(counts) * 95 // 100) - 1],
        "trials_most": counts[-1],
        "failed_median": statistics.median(failed),
    }


def _right(job: SimulatedJob, answer: int) -> bool:
    """Say whether an answer is the largest that fits; runs differ, so there may be several."""
    sure, possible = job.fits_within()
    return sure <= min(answer, VALUES) <= possible


def _shown(answer: int, made: Sequence[tuple[int, bool]], times: int = 1) -> bool:
    """Say whether trials show both ends: the answer fitted, and one step more did not."""
    fitted = sum(steps == answer and fits for steps, fits in made)
    lower = fitted >= times or answer == 0
    upper = any(steps == answer + 1 and not fits for steps, fits in made)
    return lower and (upper or answer >= VALUES)


def measured(python: str | None, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Run ours, and the others where there is an interpreter for them."""
    wanted = jobs()
    found = {}
    for name, search in OURS.items():
        rows = [(job, *search(job)) for job in wanted]
        found[name] = summary([(job, answer, trials.made) for job, answer, trials in rows])
    floored = jobs(floors=FLOORS)
    for name, shown in ON_FLOORS.items():
        rows = [(job, *OURS[name](job)) for job in floored]
        found[shown] = summary([(job, answer, trials.made) for job, answer, trials in rows])
    if python is None:
        return found | {name: one for name, one in stored.items() if name not in found}
    command = [python, str(ROOT / "benchmarks" / "search_peers.py"), str(JOBS)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    for name, rows in told.items():
        found[name] = summary([(job, *row) for job, row in zip(wanted, rows, strict=True)])
    return found


def table(results: Mapping[str, Any]) -> str:
    """Return the results as a table in Markdown."""
    heads = ("search", "finds the largest", "shows both ends", "the lower twice")
    counts = ("trials: median", "95 % within", "most", "failed trials: median")
    lines = [f"| {' | '.join([*heads, *counts])} |", "|---" * (len(heads) + len(counts)) + "|"]
    shown = {name: one for name, one in results.items() if name not in ON_FLOORS.values()}
    for name, one in shown.items():
        shares = [f"{one[key] / JOBS:.0%}" for key in ("right", "brackets", "fitted_twice")]
        taken = [f"{one[f'trials_{key}']:g}" for key in ("median", "p95", "most")]
        lines.append(f"| {' | '.join([name, *shares, *taken])} | {one['failed_median']:g} |")
    taken = [f"{results[name]['trials_median']:g}" for name in ON_FLOORS.values()]
    found = [f"{results[name]['fitted_twice'] / JOBS:.0%}" for name in ON_FLOORS.values()]
    lines += [
        "",
        f"Where {FLOORS:.0%} of the jobs have a phase besides that takes 30 to 95 % of the card at",
        f"any value, ours takes {taken[0]} trials in the median with an estimate,",
        f"{taken[1]} without one; both ends shown, the lower twice: {found[0]} and {found[1]}.",
    ]
    return "\n".join(lines)


def missed(results: Mapping[str, Any]) -> list[str]:
    """Return the goals that are missed, in words."""
    found = []
    for name, one in results.items():
        mine = name.startswith("oomdoctor") or name in ON_FLOORS.values()
        if mine and one["fitted_twice"] < JOBS:
            found.append(f"{name}: a true bracket in {one['fitted_twice']} of {JOBS} jobs")
        if name in GOALS and one["trials_median"] > GOALS[name]:
            found.append(f"{name}: {one['trials_median']:g} trials, more than {GOALS[name]}")
        if name in GOALS and one["failed_median"] > 1:
            found.append(f"{name}: {one['failed_median']:g} failed trials, more than 1")
    return found


def main() -> int:
    """Measure, show, store and check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    results = measured(options.python, stored)
    print(table(results))
    if options.write:
        STORED.write_text(json.dumps(results, indent=1) + "\n")
        before, _, rest = PAGE.read_text().partition(START)
        PAGE.write_text(f"{before}{START}\n{table(results)}\n{END}{rest.partition(END)[2]}")
    faults = missed(results)
    if options.check and not options.write:
        faults += [
            f"{name}: not as stored" for name in results if results[name] != stored.get(name)
        ]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if options.check and faults else 0


if __name__ == "__main__":
    sys.exit(main())
