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

    `marked` are the rows to look at, told by a word in them as well. Cells of `whole` columns are
    never cut: they are names to type.
    """

    caption: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    marked: frozenset[int] = frozenset()
    whole: frozenset[int] = frozenset()


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
    bad in that order. `lines` are several by name, which only a page can tell from one another.
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
    lines: tuple[tuple[str, tuple[tuple[float, float], ...]], ...] = ()
    words: tuple[tuple[str, str], ...] = ()


class Series(NamedTuple):
    """A line of a time line: its name, and what was there from each place on, in bytes."""

    name: str
    points: tuple[tuple[float, float], ...]


class Stretch(NamedTuple):
    """A phase of a time line: its name, where it begins and where it ends."""

    name: str
    start: float
    end: float


class Mark(NamedTuple):
    """A moment of a time line, such as that of a failed request; a `calm` one is no failure."""

    at: float
    label: str
    calm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Bytes over a run, from zero up; `across` says what its places count.

    Between two points a series stays as it is. `levels` are heights to compare with, by name.
    """

    caption: str
    across: str
    series: tuple[Series, ...]
    phases: tuple[Stretch, ...] = ()
    marks: tuple[Mark, ...] = ()
    levels: tuple[tuple[str, float], ...] = ()


class FlameFrame(NamedTuple):
    """A call of a flame graph: how deep it lies, where it begins, what it leads to, its words.

    `note` is the whole of what `label` cuts short; `own` tells code of the user's from libraries'.
    """

    depth: int
    start: int
    size: int
    label: str
    note: str
    own: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Flame:
    """What each call leads to, callers above what they call; `whole` is the width of all.

    `table` says the same in rows, for readers who cannot see the picture.
    """

    caption: str
    whole: int
    frames: tuple[FlameFrame, ...]
    table: Table


class StackPart(NamedTuple):
    """A part of a stacked bar: its name, how long it is, what stands beside it.

    `kind` chooses its fill where it has one of its own: free, other processes, ...
    """

    name: str
    value: int
    amount: str
    note: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One bar made of parts, of a whole that may be larger than their sum."""

    caption: str
    parts: tuple[StackPart, ...]
    whole: int = 0


class Quoted(NamedTuple):
    """A line of an input, word for word, and where it stands."""

    place: str
    text: str


class Code(NamedTuple):
    """Text to copy, word for word: a patch (diff), a command (sh), settings; `title` heads it."""

    text: str
    language: str = ""
    title: str = ""


class Point(NamedTuple):
    """A short remark behind a sign: `+` speaks for something, `-` against it, `!` warns."""

    sign: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """An item that shows its title, and the rest when it is opened.

    `badge` stands before the title, `tag` behind it; `share` of the whole is drawn as a bar. `role`
    is a word of the theme: bad, aside, good, open or none. `opened` items show all from the start.
    """

    title: str
    badge: str = ""
    tag: str = ""
    role: str = "none"
    share: float | None = None
    sentences: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()
    quotes: tuple[Quoted, ...] = ()
    contrary: tuple[Point, ...] = ()
    contrary_quotes: tuple[Quoted, ...] = ()
    codes: tuple[Code, ...] = ()
    opened: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page: sentences, pictures, figures; a `folded` one is opened by the reader."""

    title: str
    sentences: tuple[str, ...] = ()
    stack: Stack | None = None
    chart: Chart | None = None
    heat: HeatMap | None = None
    curve: Curve | None = None
    plot: Plot | None = None
    timeline: Timeline | None = None
    flame: Flame | None = None
    folds: tuple[Fold, ...] = ()
    points: tuple[Point, ...] = ()
    codes: tuple[Code, ...] = ()
    table: Table | None = None
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole report: title, the answer in a sentence or two, key figures, sections.

    `role` is the sign of the answer: bad, aside, good, open or none; `badges` are words beside it,
    `quotes` the lines that show it.
    """

    title: str
    lead: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()
    role: str = ""
    badges: tuple[str, ...] = ()
    quotes: tuple[Quoted, ...] = ()
