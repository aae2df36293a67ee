"""By how much engines' peaks were off, as the shares that `oomdoctor/memory/bands.py` holds.

Each share is that of 95 % of the comparable records, rounded up to a whole percent; a verdict's end
at 8 %. What must be reserved is compared with what was reserved; of the formula, which tells no
reserved peak, also with what was allocated, for at least that must be.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.accuracy_summary import ENGINES, error_of, speaks
from benchmarks.measured import ALLOCATED, RESERVED
from oomdoctor.memory.bands import FRAGMENTED, WIDEST, Band

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.measured import Record

COVERED = 0.95


class Spread(NamedTuple):
    """How far records lay to one side: how many, 95 % of them, the farthest, and the share."""

    records: int
    covered: float
    worst: float
    share: float


def band_of(found: Mapping[str, Spread]) -> Band:
    """Return the band that one engine's figures come to."""
    return Band(**{name: one.share for name, one in found.items()})


def spreads(wanted: Sequence[Record], results: Mapping[str, Any]) -> dict[str, dict[str, Spread]]:
    """Return the figures behind each share of each engine's band."""
    found = {}
    for engine in ENGINES:
        allocated = list(_ratios(wanted, results, engine, ALLOCATED))
        reserved = list(_ratios(wanted, results, engine, RESERVED))
        least = [one / FRAGMENTED for one in allocated] if engine == "formula" else []
        found[engine] = {
            "off": _spread([abs(one - 1) for one in allocated], 1.0),
            "up": _spread([one - 1 for one in (*reserved, *least)], WIDEST),
            "down": _spread([1 - one for one in reserved], WIDEST),
        }
    return found


def _ratios(
    wanted: Sequence[Record], results: Mapping[str, Any], engine: str, quantity: str
) -> Iterator[float]:
    """Yield measured over estimated bytes; 1 within the rounding of what was printed."""
    for one in wanted:
        if one.quantity == quantity and speaks(one, engine):
            off = error_of(one, results[one.id].get(engine, {}).get("bytes"))
            if off is not None:
                yield 1 / (1 + off)


def _spread(shares: Sequence[float], most: float) -> Spread:
    ordered = sorted(max(0.0, one) for one in shares)
    covered = ordered[min(len(ordered) - 1, int(COVERED * len(ordered)))]
    share = min(most, math.ceil(100 * covered) / 100)
    return Spread(len(ordered), covered, ordered[-1], share)
