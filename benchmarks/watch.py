"""How well growth is judged: 400 made-up series of 8 kinds, looked at 100 times as they come in.

    python benchmarks/watch.py           # the table of docs/watch.md
    python benchmarks/watch.py --write   # writes it there

Four kinds leak and would fill the room that is left; four do not. Asked is how often an innocent
run gets an alarm at any of the looks, how far into the run a leak is told, and how far the forecast
at that look is from the truth.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from itertools import pairwise
from math import exp
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oomdoctor.growth.points import Point
from oomdoctor.growth.verdict import Level, Verdict, device_verdict, host_verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    Judge = Callable[[list[Point], int], Verdict]

MIB = 1 << 20
GIB = 1 << 30
EACH = 50
MOST_STEPS = 6500
LOOKS = 100
TEN = 10
PAGE = Path(__file__).resolve().parents[1] / "docs" / "watch.md"
MARKS = ("<!-- study -->", "<!-- end of study -->")


class Series(NamedTuple):
    """A run: its points, the limit, and the step at which a leak would fill it."""

    points: list[Point]
    limit_bytes: int
    full_at: float | None


class Told(NamedTuple):
    """What the looks at one run gave: shares of the run, and the forecast at the first alarm."""

    alarm: float | None
    notice: float | None
    off: float | None
    covered: bool | None
    ten_rising: bool


def main(arguments: list[str] | None = None) -> int:
    """Run the study and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table into docs/watch.md")
    parser.add_argument("--each", type=int, default=EACH, help="series of each kind")
    parser.add_argument("--seed", type=int, default=20261)
    given = parser.parse_args(arguments)
    began = time.perf_counter()
    rows = []
    for name, (make, judge, leaks) in KINDS.items():
        told = [
            look(make(random.Random(f"{given.seed} {name} {number}")), judge)
            for number in range(given.each)
        ]
        rows.append(row(name, told, leaks=leaks))
    table = "\n".join([HEAD, *rows])
    print(table)
    print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)
    if given.write:
        write(table)
    return 0


HEAD = (
    "| series | alarm | told after | notice | forecast off | interval holds | ten rising |\n"
    "|---|---:|---:|---:|---:|---:|---:|"
)


def row(name: str, told: list[Told], *, leaks: bool) -> str:
    """Return a kind's line of the table."""
    alarms = [one.alarm for one in told if one.alarm is not None]
    notices = [one.notice for one in told if one.notice is not None]
    off = sorted(abs(one.off) for one in told if one.off is not None)
    covered = [one.covered for one in told if one.covered is not None]
    after = (
        f"{percent(median(alarms))} ({percent(min(alarms))} to {percent(max(alarms))})"
        if alarms
        else ""
    )
    cells = [
        f"{name}{'' if leaks else ' (no leak)'}",
        f"{len(alarms)} of {len(told)}",
        after,
        f"{len(notices)} of {len(told)}",
        percent(median(off)) if leaks and off else "",
        percent(sum(covered) / len(covered)) if leaks and covered else "",
        f"{sum(one.ten_rising for one in told)} of {len(told)}",
    ]
    return f"| {' | '.join(cells)} |"


def percent(share: float) -> str:
    """Return a share as one reads it."""
    return f"{100 * share:.0f} %"


def look(series: Series, judge: Judge) -> Told:
    """Look at a run as it comes in, and note the first notice and the first alarm."""
    count, notice = len(series.points), None
    naive = ten_rising(series.points)
    for number in range(1, LOOKS + 1):
        known = count * number // LOOKS
        found = judge(series.points[:known], series.limit_bytes)
        if found.level >= Level.NOTICE and notice is None:
            notice = known / count
        if found.level is Level.ALARM:
            return Told(known / count, notice, *forecast_of(found, series), naive)
    return Told(None, notice, None, None, naive)


def ten_rising(points: list[Point]) -> bool:
    """Say whether any ten samples of the kept bytes rise in a row, as a simple watch would ask."""
    row = 0
    for before, after in pairwise(points):
        row = row + 1 if after.low > before.low else 0
        if row == TEN:
            return True
    return False


def forecast_of(found: Verdict, series: Series) -> tuple[float | None, bool | None]:
    """Return how far the steps that are left are from the truth, and whether the interval holds."""
    told = found.forecast
    if told is None or series.full_at is None:
        return None, None
    left = series.full_at - told.now
    last = float("inf") if told.last is None else told.last
    return (told.left - left) / left, told.first <= left <= last


def write(table: str) -> None:
    """Put the table between its marks."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(MARKS[0])
    tail = rest.partition(MARKS[1])[2]
    PAGE.write_text(f"{head}{MARKS[0]}\n\n{table}\n\n{MARKS[1]}{tail}", encoding="utf-8")


def made(
    random_: random.Random,
    low: Callable[[int], float],
    high: Callable[[int], float],
    *,
    slope: float = 0.0,
    start: float = 0.0,
) -> Series:
    """Return a run whose limit a leak of this slope reaches at up to three times its length."""
    count = random_.randint(100, 2000)
    points = [Point(n, n * 0.8, int(low(n)), int(high(n))) for n in range(1, count + 1)]
    top = max(one.high for one in points)
    if not slope:
        return Series(points, int(top + random_.uniform(0.1, 2) * (top + GIB)), None)
    above = max(one.high - one.low for one in points)
    limit = int(start + slope * count * random_.uniform(1.05, 3) + above)
    full = next((n for n in range(1, MOST_STEPS) if high(n) > limit), None)
    return Series([one for one in points if full is None or one.at < full], limit, full)


def device(points: list[Point], limit: int) -> Verdict:
    """Judge what is allocated."""
    return device_verdict(points, [], limit_bytes=limit)


def host(points: list[Point], limit: int) -> Verdict:
    """Judge memory of the host."""
    return host_verdict(points, limit_bytes=limit)


def steady_leak(rng: random.Random) -> Series:
    """Keep the same on the card after each step, behind a warm-up, under varying peaks."""
    base, each = rng.uniform(1, 20) * GIB, rng.uniform(2, 60) * MIB
    warm, jump = rng.randint(1, 12), rng.uniform(0, 4) * GIB

    def low(n: int) -> float:
        return base + jump * (n >= warm) + each * n

    return made(rng, low, lambda n: low(n) + rng.uniform(1, 3) * GIB, slope=each, start=base + jump)


def uneven_leak(rng: random.Random) -> Series:
    """Keep a graph whose size follows the batch, beside a batch that is held until the next."""
    base, each = rng.uniform(1, 20) * GIB, rng.uniform(4, 60) * MIB
    held = [rng.lognormvariate(0, 0.6) * each for _ in range(MOST_STEPS)]
    total = [base]
    for one in held:
        total.append(total[-1] + one)
    mean = (total[-1] - base) / len(held)

    def low(n: int) -> float:
        return total[n] + rng.uniform(0, 12) * each

    return made(rng, low, lambda n: total[n] + 2 * GIB, slope=mean, start=base)


def leak_by_evaluation(rng: random.Random) -> Series:
    """Keep what each evaluation gave."""
    base, each = rng.uniform(1, 20) * GIB, rng.uniform(50, 900) * MIB
    every = rng.randint(4, 10)

    def low(n: int) -> float:
        return base + each * (n // every) + rng.uniform(0, 20) * MIB

    return made(rng, low, lambda n: low(n) + GIB, slope=each / every, start=base)


def host_leak(rng: random.Random) -> Series:
    """Let a list of the host grow, beside what the C library holds and lets go."""
    base, each = rng.uniform(0.5, 8) * GIB, rng.uniform(1, 30) * MIB
    noise = rng.uniform(1, 20) * each

    def low(n: int) -> float:
        return base + each * n + abs(rng.gauss(0, noise))

    return made(rng, low, low, slope=each, start=base)


def longer_batches(rng: random.Random) -> Series:
    """Vary the length, so that now and then a batch is the longest so far."""
    base, mean = rng.uniform(1, 20) * GIB, rng.uniform(0.2, 3) * GIB
    kept = rng.uniform(0, 0.2)
    sizes = [rng.lognormvariate(0, 0.7) * mean for _ in range(MOST_STEPS)]
    return made(rng, lambda n: base + kept * sizes[n], lambda n: base + (1 + kept) * sizes[n])


def warm_up(rng: random.Random) -> Series:
    """Fill a cache, quickly first: workspaces, lazily made states, tokenised rows."""
    base, size = rng.uniform(1, 20) * GIB, rng.uniform(0.05, 0.5) * GIB
    slow = rng.uniform(3, 150)

    def low(n: int) -> float:
        return base + size * (1 - exp(-n / slow)) + rng.uniform(0, 8) * MIB

    return made(rng, low, low)


def saw(rng: random.Random) -> Series:
    """Gather through an epoch and let go at its end."""
    base, each = rng.uniform(1, 20) * GIB, rng.uniform(0.5, 4) * MIB
    epoch, noise = rng.randint(20, 200), rng.uniform(0, 20) * MIB

    def low(n: int) -> float:
        return base + each * (n % epoch) + rng.uniform(0, 1) * noise

    return made(rng, low, low)


def wander(rng: random.Random) -> Series:
    """Wander as the memory of a host does: each step near the one before, drawn to a middle."""
    base, wide = rng.uniform(1, 20) * GIB, rng.uniform(20, 400) * MIB
    back = rng.uniform(0.01, 0.2)
    values = [0.0]
    for _ in range(MOST_STEPS):
        values.append(values[-1] * (1 - back) + rng.gauss(0, wide * back**0.5))
    return made(rng, lambda n: base + values[n], lambda n: base + values[n])


KINDS: dict[str, tuple[Callable[[random.Random], Series], Judge, bool]] = {
    "the same each step": (steady_leak, device, True),
    "by the batch, noisy": (uneven_leak, device, True),
    "at each evaluation": (leak_by_evaluation, device, True),
    "host list": (host_leak, host, True),
    "longer batches": (longer_batches, device, False),
    "warm-up and caches": (warm_up, host, False),
    "saw by epochs": (saw, host, False),
    "wandering host memory": (wander, host, False),
}

if __name__ == "__main__":
    sys.exit(main())
