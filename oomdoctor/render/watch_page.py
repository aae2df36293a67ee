"""What a watch found as a page: the verdicts, and the series that they were read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.growth.findings import DEVICE
from oomdoctor.growth.verdict import Level
from oomdoctor.render.page import Figure, Mark, Page, Section, Series, Table, Timeline
from oomdoctor.render.watch_words import duration, headline, kind_words, sentences, subject
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.growth.book import Book
    from oomdoctor.growth.findings import Finding
    from oomdoctor.growth.points import Point
    from oomdoctor.growth.process import ProcessBook
    from oomdoctor.render.watch_screen import Shown

MOST_POINTS = 400
MOST_PROCESSES = 4
FEWEST = 3
NOTHING = "No memory grows, as far as it was watched."
LEVELS = {Level.ALARM: " (alarm)", Level.NOTICE: "", Level.QUIET: ""}


def watch_page(shown: Shown) -> Page:
    """Return the page."""
    loud = [one for one in shown.findings if one.verdict.level > Level.QUIET]
    told = [" ".join([f"{headline(one)}.", *sentences(one, is_over=shown.is_over)]) for one in loud]
    return Page(
        title=f"{shown.title}: {duration(shown.book.seconds)}, {shown.state}",
        lead=tuple(told) or (NOTHING,),
        figures=tuple(_figures(shown.book)),
        sections=(*_sections(shown), _verdicts(shown)),
        notes=shown.notes,
    )


def _figures(book: Book) -> Iterator[Figure]:
    if book.job_bytes is not None:
        yield Figure("held on the host", format_size(book.job_bytes), "by all processes")
    if book.available_bytes is not None and book.total_bytes is not None:
        whole = format_size(book.total_bytes)
        yield Figure("left on the host", format_size(book.available_bytes), f"of {whole}")
    for _, card in sorted(book.cards.items()):
        if card.used_bytes is not None:
            whole = "" if card.total_bytes is None else f"of {format_size(card.total_bytes)}"
            yield Figure(f"used of card {card.index}", format_size(card.used_bytes), whole)


def _verdicts(shown: Shown) -> Section:
    rows = [
        (
            subject(one),
            one.memory,
            kind_words(one) + LEVELS[one.verdict.level],
            " ".join(sentences(one, is_over=shown.is_over)),
        )
        for one in shown.findings
    ]
    return Section(
        title="All verdicts",
        table=Table(
            caption="What each series shows",
            headers=("of", "memory", "verdict", "why"),
            rows=tuple(rows),
            marked=frozenset(
                at for at, one in enumerate(shown.findings) if one.verdict.level is Level.ALARM
            ),
        ),
    )


def _sections(shown: Shown) -> Iterator[Section]:
    """Yield the pictures of the processes that hold most, on their cards and on the host."""
    every = sorted(shown.book.processes.values(), key=_weight, reverse=True)
    for process in every[:MOST_PROCESSES]:
        found = [one for one in shown.findings if one.pid == process.pid]
        for one in (_device(process, found), _host(process, found)):
            if one is not None:
                yield one


def _weight(process: ProcessBook) -> tuple[int, int]:
    return process.device_bytes or 0, process.host_bytes or 0


def _device(process: ProcessBook, found: Sequence[Finding]) -> Section | None:
    points = process.allocated.points
    lines = [
        Series("kept after a step", _lows(points)),
        Series("peak of a step", _highs(points)),
        Series("reserved", _lows(process.reserved.points)),
    ]
    about = [one for one in found if one.memory == DEVICE]
    limit = process.card_bytes
    levels = () if limit is None else (("card", float(limit)),)
    return _section(process, "on its card", lines, about, levels)


def _host(process: ProcessBook, found: Sequence[Finding]) -> Section | None:
    lines = [Series("resident", _lows(process.host.points))]
    return _section(process, "on the host", lines, [one for one in found if one.memory != DEVICE])


def _section(
    process: ProcessBook,
    where: str,
    lines: Sequence[Series],
    found: Sequence[Finding],
    levels: tuple[tuple[str, float], ...] = (),
) -> Section | None:
    known = tuple(one for one in lines if len(one.points) >= FEWEST)
    if not known:
        return None
    by_step = any(one.by_step for one in found)
    who = f"process {process.pid}" if process.rank is None else f"rank {process.rank}"
    across = "steps" if by_step else "seconds since the start"
    line = Timeline(
        caption=f"Bytes over {across}",
        across=across,
        series=known,
        marks=tuple(_marks(process, found)),
        levels=levels,
    )
    return Section(title=f"Memory of {who} {where}", timeline=line)


def _marks(process: ProcessBook, found: Sequence[Finding]) -> Iterator[Mark]:
    if process.oom_step is not None:
        yield Mark(process.oom_step, f"out of memory in step {format_count(process.oom_step + 1)}")
    for one in found:
        growth = one.verdict.growth
        if growth is not None and growth.rises:
            yield Mark(growth.since, "it rises from here on", calm=True)


def _lows(points: Sequence[Point]) -> tuple[tuple[float, float], ...]:
    return tuple((one.at, float(one.low)) for one in _thinned(points))


def _highs(points: Sequence[Point]) -> tuple[tuple[float, float], ...]:
    return tuple((one.at, float(one.high)) for one in _thinned(points))


def _thinned(points: Sequence[Point]) -> list[Point]:
    """Return so many pieces at most, each with its lowest floor and its highest peak."""
    size = max(1, -(-len(points) // MOST_POINTS))
    pieces = [points[at : at + size] for at in range(0, len(points), size)]
    return [
        one[0]._replace(low=min(each.low for each in one), high=max(each.high for each in one))
        for one in pieces
    ]
