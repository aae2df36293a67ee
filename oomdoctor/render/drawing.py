"""A picture with two axes in the units of its data: what curves, plots and time lines become.

The SVG of a page and the charts of the library are made from the same drawing.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple, dataclass
from oomdoctor.render.escape import visible
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.render.page import Curve, Plot, Section, Timeline

Places = tuple[tuple[float, float], ...]
ABOVE = 1.14
"""How much higher than its highest value a picture is."""
MOST_MARKS = 24
MOST_BANDS = 200
MOST_READ = 1000
NEAR = 0.4
"""Moments nearer than this share of the width have their names below one another."""
ROWS = 4


class Path(NamedTuple):
    """A line: its name, the places that it joins, whether the area below it is filled."""

    name: str
    places: Places
    filled: bool = False


class Band(NamedTuple):
    """A stretch of the first axis with its name."""

    name: str
    start: float
    end: float


class Level(NamedTuple):
    """A height to compare with, by name."""

    name: str
    y: float


class Moment(NamedTuple):
    """A place on the first axis that stands out, by name; `row` keeps names from one another."""

    name: str
    x: float
    calm: bool = False
    row: int = 0


class Dot(NamedTuple):
    """A measured point: where it lies, whether it is a good one, what it says."""

    x: float
    y: float
    good: bool
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture from `left` to `right` and from zero to `top`; `across` names the first axis.

    `words` say what a good dot and a bad one are.
    """

    caption: str
    across: str
    left: float
    right: float
    top: float
    paths: tuple[Path, ...]
    bands: tuple[Band, ...] = ()
    levels: tuple[Level, ...] = ()
    moments: tuple[Moment, ...] = ()
    dots: tuple[Dot, ...] = ()
    words: tuple[str, ...] = ()


def drawings_of(section: Section) -> tuple[Drawing, ...]:
    """Return the drawings of a section, in the order in which it shows them."""
    found = []
    if section.curve is not None and section.curve.points:
        found.append(curve_drawing(section.curve))
    if section.plot is not None:
        found.append(plot_drawing(section.plot))
    if section.timeline is not None and any(one.points for one in section.timeline.series):
        found.append(timeline_drawing(section.timeline))
    return tuple(found)


def curve_drawing(curve: Curve) -> Drawing:
    """Return the drawing of a curve; memory does not slope, so every value lasts to the next."""
    places: list[tuple[float, float]] = []
    bands: list[Band] = []
    at = 0.0
    for name, group in groupby(curve.points, key=lambda one: one.stretch):
        start = at
        for one in group:
            places.append((at, one.value))
            at += one.steps
        bands.append(Band(name, start, at))
    places.append((at, places[-1][1]))
    highest = max(y for _, y in [*places, *((0.0, level) for _, level in curve.lines)])
    return Drawing(
        caption=curve.caption,
        across="",
        left=0.0,
        right=at or 1.0,
        top=highest * ABOVE or 1.0,
        paths=(Path("allocated", stepped(places), filled=True),),
        bands=_joined(bands),
        levels=tuple(Level(name, level) for name, level in curve.lines),
    )


def plot_drawing(plot: Plot) -> Drawing:
    """Return the drawing of a plot."""
    good = plot.words[0][0] if plot.words else ""
    lines = (("fitted curve", plot.line), *plot.lines)
    return Drawing(
        caption=plot.caption,
        across=plot.across,
        left=0.0,
        right=plot.width or 1.0,
        top=plot.height or 1.0,
        paths=tuple(Path(name, places) for name, places in lines if places),
        levels=() if plot.level is None else (Level(*plot.level),),
        dots=tuple(Dot(one.x, one.y, one.word == good, one.label) for one in plot.points),
        words=tuple(meaning for _, meaning in plot.words),
    )


def timeline_drawing(timeline: Timeline) -> Drawing:
    """Return the drawing of a time line; the area below its first series is filled."""
    places = [place for one in timeline.series for place in one.points]
    xs = [x for x, _ in places] + [x for one in timeline.phases for x in (one.start, one.end)]
    xs += [one.at for one in timeline.marks]
    left, right = min(xs), max(xs)
    highest = max([y for _, y in places] + [y for _, y in timeline.levels])
    paths = tuple(
        Path(one.name, stepped([*one.points, (right, one.points[-1][1])]), filled=at == 0)
        for at, one in enumerate(timeline.series)
        if one.points
    )
    return Drawing(
        caption=timeline.caption,
        across=timeline.across,
        left=left,
        right=right if right > left else left + 1.0,
        top=highest * ABOVE or 1.0,
        paths=paths,
        bands=_joined([Band(one.name, one.start, one.end) for one in timeline.phases]),
        levels=tuple(Level(name, level) for name, level in timeline.levels),
        moments=_moments(timeline, (right - left) * NEAR),
    )


def _joined(bands: list[Band]) -> tuple[Band, ...]:
    """Join neighbours of one name; of very many stretches the widest are kept."""
    found: list[Band] = []
    for one in sorted(bands, key=lambda one: one.start):
        if found and found[-1].name == one.name and one.start <= found[-1].end:
            found[-1] = found[-1]._replace(end=max(found[-1].end, one.end))
        else:
            found.append(one)
    if len(found) > MOST_BANDS:
        least = sorted((one.end - one.start for one in found), reverse=True)[MOST_BANDS]
        found = [one for one in found if one.end - one.start > least]
    return tuple(found)


def _moments(timeline: Timeline, near: float) -> tuple[Moment, ...]:
    found: list[Moment] = []
    for one in sorted(timeline.marks[-MOST_MARKS:]):
        before = found[-1] if found else None
        row = (before.row + 1) % ROWS if before is not None and one.at - before.x < near else 0
        found.append(Moment(one.label, one.at, one.calm, row))
    return tuple(found)


def stepped(places: Sequence[tuple[float, float]]) -> Places:
    """Return the corners of a line that stays as it is between two places."""
    found = [*places[:1]]
    for (_, before), (x, y) in pairwise(places):
        if y != before:
            found += [(x, before), (x, y)]
    if places and found[-1] != places[-1]:
        found.append(places[-1])
    return tuple(found)


def thinned(places: Places, most: int) -> Places:
    """Return at most about `most` places that look the same: highs and lows of each stretch."""
    if len(places) <= most:
        return places
    count = max(most // 4, 1)
    left, width = places[0][0], (places[-1][0] - places[0][0]) / count or 1.0
    found: list[tuple[float, float]] = []
    for _, group in groupby(enumerate(places), key=lambda one: int((one[1][0] - left) / width)):
        held = list(group)
        low = min(held, key=lambda one: one[1][1])
        high = max(held, key=lambda one: one[1][1])
        found += [places[at] for at in sorted({held[0][0], low[0], high[0], held[-1][0]})]
    return tuple(found)


class Readings(NamedTuple):
    """What can be read off a drawing: places, the height of its first line there, rows of words."""

    places: tuple[float, ...]
    heights: tuple[float, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def readings(drawing: Drawing) -> Readings:
    """Return what every line, and the stretch, is at each of at most MOST_READ places."""
    known = sorted({x for one in drawing.paths for x, _ in thinned(one.places, MOST_READ)})
    places = known[:: max(1, -(-len(known) // MOST_READ))]
    rows, heights = [], [0.0] * len(places)
    for number, path in enumerate(drawing.paths):
        values = [_at(path.places, x) for x in places]
        rows.append((path.name, tuple("" if y is None else format_size(y) for y in values)))
        heights = [y or 0.0 for y in values] if number == 0 else heights
    if drawing.bands:
        starts = [one.start for one in drawing.bands]
        names = (drawing.bands[max(bisect_right(starts, x) - 1, 0)].name for x in places)
        rows.append(("phase", tuple(visible(name) for name in names)))
    return Readings(tuple(places), tuple(heights), tuple(rows))


def _at(places: Places, x: float) -> float | None:
    """Return the height of a line at a place; None before it begins."""
    at = bisect_right(places, x, key=itemgetter(0))
    return places[at - 1][1] if at else None
