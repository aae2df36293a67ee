"""Series as runs have them, for the tests of growth."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from oomdoctor.growth.points import Point

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
GIB = 1 << 30


def series(
    low: Callable[[int], float], high: Callable[[int], float] | None = None, *, count: int = 200
) -> list[Point]:
    """Return points of half a second each."""
    top = low if high is None else high
    return [Point(n, n * 0.5, int(low(n)), int(top(n))) for n in range(1, count + 1)]


def noise(wide: float, seed: int = 3) -> Callable[[int], float]:
    """Return noise from zero up that is the same each time."""
    rng = random.Random(seed)
    values = [rng.uniform(0, wide) for _ in range(5000)]
    return lambda n: values[n]
