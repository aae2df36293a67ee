"""Where the lines of a drawn curve lie, in the units of an inline SVG picture."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.render.page import Curve

WIDTH, HEIGHT = 960, 260
LEAST_NAMED = 60


class Band(NamedTuple):
    """A stretch of the curve: where it begins, how wide it is, its name and whether it shows."""

    x: float
    width: float
    name: str
    named: bool
    odd: bool


class Level(NamedTuple):
    """A level to compare with: how far down it lies, and its name."""

    y: float
    name: str


class Drawing(NamedTuple):
    """All of a curve in the picture: the area as a path, its stretches and its levels."""

    width: int
    height: int
    path: str
    bands: tuple[Band, ...]
    levels: tuple[Level, ...]


def drawn(curve: Curve) -> Drawing:
    """Return the drawing of a curve; steps are kept, for memory does not slope."""
    whole = sum(one.steps for one in curve.points) or 1
    highest = max([one.value for one in curve.points] + [one for _, one in curve.lines]) or 1.0
    top = highest * 1.04
    moves = [f"M0 {HEIGHT}"]
    at = 0.0
    for one in curve.points:
        y = HEIGHT * (1 - one.value / top)
        moves.append(f"V{y:.1f}")
        at += WIDTH * one.steps / whole
        moves.append(f"H{at:.1f}")
    moves.append(f"V{HEIGHT} Z")
    return Drawing(
        width=WIDTH,
        height=HEIGHT,
        path=" ".join(moves),
        bands=_bands(curve, whole),
        levels=tuple(Level(HEIGHT * (1 - level / top), name) for name, level in curve.lines),
    )


def _bands(curve: Curve, whole: int) -> tuple[Band, ...]:
    found: list[Band] = []
    at = 0.0
    for name, group in groupby(curve.points, key=lambda one: one.stretch):
        width = WIDTH * sum(one.steps for one in group) / whole
        found.append(Band(at, width, name, width >= LEAST_NAMED, len(found) % 2 == 1))
        at += width
    return tuple(found)
