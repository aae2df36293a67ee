"""A drawing laid out for a page without any library: lines in SVG, words over it in percent.

The lines stretch with the page; words and dots keep their size, so that a phone can show them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple, dataclass
from oomdoctor.render.drawing import thinned
from oomdoctor.render.ticks import count_ticks, number_words, size_ticks

if TYPE_CHECKING:
    from oomdoctor.render.drawing import Drawing, Path

SIDE = 1000
"""Width and height of the picture in units of its own; the page stretches it."""
MOST_PLACES = 1200
LEAST_BAND = 6.0
"""Percent of the width from which on a stretch is named."""


class Tick(NamedTuple):
    """A figure of an axis, or a level or moment by name: how far along it lies, in percent."""

    at: float
    name: str
    calm: bool = False
    row: int = 0


class Stripe(NamedTuple):
    """A stretch: where it begins and how wide it is in percent, and whether its name has room."""

    at: float
    width: float
    name: str
    named: bool


class Line(NamedTuple):
    """A line as a path, with its name and number; `area` is the path of what lies below it."""

    number: int
    name: str
    path: str
    area: str


class Spot(NamedTuple):
    """A dot: its place in percent, whether it is a good one, and what it says."""

    x: float
    y: float
    good: bool
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """All that a page needs to show a drawing; distances are from the left and from the bottom."""

    caption: str
    across: str
    lines: tuple[Line, ...]
    stripes: tuple[Stripe, ...]
    rows: tuple[Tick, ...]
    columns: tuple[Tick, ...]
    levels: tuple[Tick, ...]
    moments: tuple[Tick, ...]
    spots: tuple[Spot, ...]
    words: tuple[str, ...]
    ends: str


def picture_of(drawing: Drawing) -> Picture:
    """Return the picture of a drawing."""

    def across(x: float) -> float:
        return 100 * (x - drawing.left) / (drawing.right - drawing.left)

    def up(y: float) -> float:
        return 100 * y / drawing.top

    return Picture(
        caption=drawing.caption,
        across=drawing.across,
        lines=tuple(_line(at, one, drawing) for at, one in enumerate(drawing.paths)),
        stripes=tuple(
            Stripe(across(one.start), width, one.name, width >= LEAST_BAND)
            for one in drawing.bands
            if (width := across(one.end) - across(one.start)) > 0
        ),
        rows=tuple(Tick(up(at), name) for at, name in size_ticks(drawing.top)),
        columns=tuple(
            Tick(across(at), name) for at, name in count_ticks(drawing.left, drawing.right)
        ),
        levels=tuple(Tick(up(one.y), one.name) for one in drawing.levels),
        moments=tuple(Tick(across(one.x), one.name, one.calm, one.row) for one in drawing.moments),
        spots=tuple(Spot(across(one.x), up(one.y), one.good, one.label) for one in drawing.dots),
        words=drawing.words,
        ends=f"{number_words(drawing.left)} to {number_words(drawing.right)}",
    )


def _line(number: int, path: Path, drawing: Drawing) -> Line:
    width = drawing.right - drawing.left
    places = [
        f"{SIDE * (x - drawing.left) / width:.1f} {SIDE * (1 - y / drawing.top):.1f}"
        for x, y in thinned(path.places, MOST_PLACES)
    ]
    if not places:
        return Line(number, path.name, "", "")
    first, last = places[0].partition(" ")[0], places[-1].partition(" ")[0]
    drawn = f"M{' L'.join(places)}"
    area = f"{drawn} L{last} {SIDE} L{first} {SIDE} Z" if path.filled else ""
    return Line(number, path.name, drawn, area)
