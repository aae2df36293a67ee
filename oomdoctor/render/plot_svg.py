"""Where the points and the line of a plot lie, in the units of an inline SVG picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple
from oomdoctor.render.pictures_svg import HEIGHT, WIDTH

if TYPE_CHECKING:
    from oomdoctor.render.page import Plot


class Dot(NamedTuple):
    """A point: its place, whether it is a good one, and what it says when it is pointed at."""

    x: float
    y: float
    good: bool
    label: str


class PlotDrawing(NamedTuple):
    """All of a plot in the picture: its line as a path, its points, and how far down the level."""

    width: int
    height: int
    path: str
    dots: tuple[Dot, ...]
    level: float


def plotted(plot: Plot) -> PlotDrawing:
    """Return the drawing of a plot."""

    def across(value: float) -> float:
        return WIDTH * value / (plot.width or 1.0)

    def down(value: float) -> float:
        return HEIGHT * (1 - value / (plot.height or 1.0))

    moves = [f"{across(x):.1f} {down(y):.1f}" for x, y in plot.line]
    good = plot.words[0][0] if plot.words else ""
    return PlotDrawing(
        width=WIDTH,
        height=HEIGHT,
        path=f"M{' L'.join(moves)}" if moves else "",
        dots=tuple(
            Dot(across(one.x), down(one.y), one.word == good, one.label) for one in plot.points
        ),
        level=0.0 if plot.level is None else down(plot.level[1]),
    )
