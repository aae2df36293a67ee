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
    """Bars of one scale, with a caption that says what they show, and what marked ones are."""

    caption: str
    label: str
    bars: tuple[ChartBar, ...]
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page: sentences first, then the picture, then the figures."""

    title: str
    sentences: tuple[str, ...] = ()
    chart: Chart | None = None
    table: Table | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole report: title, the answer in a sentence or two, key figures, sections."""

    title: str
    lead: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()
