"""A report as titled sections of sentences, tables and charts, whatever it is about.

Text, Markdown and HTML show the same page, so a report is laid out once.
"""

from __future__ import annotations

from oomdoctor.record import NamedTuple, dataclass


class Figure(NamedTuple):
    """A number that the reader wants first: its name, its value in words, what it means."""

    name: str
    value: str
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under headers; `numeric` names the columns whose cells are figures.

    `marked` are the rows to look at, told by a word in them as well.
    """

    caption: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    marked: frozenset[int] = frozenset()


class ChartBar(NamedTuple):
    """One bar: its label, how long it is, what stands beside it, whether it stands out."""

    label: str
    value: float
    note: str
    marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Bars of one scale, with a caption that says what they show, and what marked ones are.

    `amount` heads what stands beside the bars.
    """

    caption: str
    label: str
    bars: tuple[ChartBar, ...]
    legend: str = ""
    amount: str = "count"


class HeatCell(NamedTuple):
    """One cell: its text, and a word of `HeatMap.words` that decides its colour and sign."""

    text: str
    word: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """A table of coloured cells; `down` and `across` name what its rows and columns are.

    `words` are those of the cells with what they mean: good, aside and bad in that order.
    """

    caption: str
    down: str
    across: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]
    words: tuple[tuple[str, str], ...] = ()


class CurvePoint(NamedTuple):
    """A point of a curve: how much, of which stretch, and how many steps it stands for."""

    value: float
    stretch: str
    steps: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Values over time, from zero up; `lines` are levels to compare with, by name.

    `top` is the label of the highest value.
    """

    caption: str
    points: tuple[CurvePoint, ...]
    top: str
    lines: tuple[tuple[str, float], ...] = ()


class PlotPoint(NamedTuple):
    """A measured point: where it lies, a word of `Plot.words` that decides its sign, its label."""

    x: float
    y: float
    word: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Points over an axis from zero on, with the line that was drawn through them.

    `level` is a height to compare with, by name; `top` and `right` label the ends of the axes,
    which lie at `height` and `width`. `words` are those of the points with what they mean: good and
    bad in that order.
    """

    caption: str
    across: str
    points: tuple[PlotPoint, ...]
    line: tuple[tuple[float, float], ...]
    width: float
    height: float
    top: str
    right: str
    level: tuple[str, float] | None = None
    words: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page: sentences first, then the pictures, then the figures."""

    title: str
    sentences: tuple[str, ...] = ()
    chart: Chart | None = None
    heat: HeatMap | None = None
    curve: Curve | None = None
    plot: Plot | None = None
    table: Table | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole report: title, the answer in a sentence or two, key figures, sections."""

    title: str
    lead: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()
