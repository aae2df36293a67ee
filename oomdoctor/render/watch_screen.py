"""The screen of `oomdoctor watch`: verdicts first, then cards, host, processes and phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.growth.verdict import Level
from oomdoctor.record import dataclass
from oomdoctor.render.escape import cells, shorten
from oomdoctor.render.layout import BLANK, Line, Span, line
from oomdoctor.render.parts.pieces import INDENT, heading, paragraph, safe
from oomdoctor.render.watch_words import duration, headline, sentences
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.growth.book import Book, CardBook
    from oomdoctor.growth.findings import Finding
    from oomdoctor.growth.points import Point
    from oomdoctor.growth.process import PhasePeaks, ProcessBook
    from oomdoctor.render.theme import Theme

SPARKS = "▁▂▃▄▅▆▇█"
ASCII_SPARKS = "_.-:=+*#"
SPARK_CELLS = 12
MOST_PROCESSES = 12
_MARKS = {Level.ALARM: "bad", Level.NOTICE: "aside", Level.QUIET: "good"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What is on the screen: of whom, the state in a word, the book and its verdicts."""

    title: str
    state: str
    book: Book
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    is_over: bool = False


def screen(shown: Shown, theme: Theme) -> list[Line]:
    """Return the lines of the screen."""
    book = shown.book
    state = f"{duration(book.seconds)}, {shown.state}"
    lines = [line(Span(safe(shown.title, theme), "heading"), Span(f"  {state}", "dim"))]
    lines += _verdicts(shown, theme)
    notes = [one for note in shown.notes for one in paragraph(note, theme, first=INDENT)]
    for part in (_totals(book, theme), _processes(book, theme), _phases(book, theme), notes):
        lines += [BLANK, *part] if part else []
    return lines


def _verdicts(shown: Shown, theme: Theme) -> list[Line]:
    """Return a paragraph for each verdict; ranks of which the same is true share one."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for found in shown.findings:
        verdict = found.verdict
        place = (found.memory, verdict.kind, verdict.level, found.pid is None, found.others)
        groups.setdefault(place, []).append(found)
    loud = [one for one in groups.values() if one[0].verdict.level > Level.QUIET]
    quiet = [one for one in groups.values() if one[0].verdict.level is Level.QUIET]
    lines: list[Line] = []
    for group in loud:
        role = _MARKS[group[0].verdict.level]
        mark = f"{theme.glyph(role)} "
        lines.append(line(Span(f"{mark}{safe(_heading(group), theme)}", role)))
        text = " ".join(sentences(group[0], is_over=shown.is_over))
        lines += paragraph(text, theme, first=" " * cells(mark))
    for group in quiet:
        text = " ".join(sentences(group[0], is_over=shown.is_over))
        words = f"{_heading(group)}. {text}".rstrip()
        lines += paragraph(words, theme, first=f"{theme.glyph('dot')} ", style="dim")
    if not groups:
        lines.append(line(Span("  nothing to judge yet", "dim")))
    return lines


def _heading(group: Sequence[Finding]) -> str:
    more = len(group) - 1
    return headline(group[0]) + (f" and {more} more like it" if more else "")


def _totals(book: Book, theme: Theme) -> list[Line]:
    lines = [_card(book.cards[index], theme) for index in sorted(book.cards)]
    words = []
    if book.job_bytes is not None:
        words.append(f"{format_size(book.job_bytes)} held")
    if book.available_bytes is not None and book.total_bytes is not None:
        left, whole = format_size(book.available_bytes), format_size(book.total_bytes)
        words.append(f"{left} of {whole} left")
    if words:
        drawn = spark(book.job.points, theme)
        lines.append(line(f"{INDENT}host    ", Span(drawn, "bar2"), f"  {', '.join(words)}"))
    return lines


def _card(card: CardBook, theme: Theme) -> Line:
    parts = []
    if card.used_bytes is not None:
        whole = "" if card.total_bytes is None else f" of {format_size(card.total_bytes)}"
        parts.append(f"{format_size(card.used_bytes)}{whole} used")
    if card.ours_bytes is not None:
        parts.append(f"{format_size(card.ours_bytes)} by these processes")
    if card.others_bytes:
        parts.append(f"{format_size(card.others_bytes)} by others")
    drawn = spark(card.ours.points, theme)
    return line(f"{INDENT}card {card.index:<3}", Span(drawn, "bar0"), f"  {', '.join(parts)}")


def _processes(book: Book, theme: Theme) -> list[Line]:
    every = sorted(book.processes.values(), key=_order)
    if not every:
        return []
    lines = [heading("Processes")]
    head = f"{'process':<18}  {'step':>8}  {'phase':<13}  {'on the card':<25}  {'on the host':<25}"
    lines.append(line(INDENT, Span(head.rstrip(), "dim")))
    lines += [_process(one, theme) for one in every[:MOST_PROCESSES]]
    if len(every) > MOST_PROCESSES:
        lines.append(line(Span(f"{INDENT}and {len(every) - MOST_PROCESSES} more", "dim")))
    return lines


def _order(process: ProcessBook) -> tuple[bool, int, int]:
    """Order by rank; those without one behind, the largest first."""
    return process.rank is None, process.rank or 0, -(process.host_bytes or 0)


def _process(process: ProcessBook, theme: Theme) -> Line:
    name = f"{process.pid} {process.name}".strip()
    if process.rank is not None:
        name = f"rank {process.rank} {name}"
    shown = shorten(safe(name, theme), 18, mark=theme.glyph("cut"))
    step = "" if process.step is None else format_count(process.step)
    phase = "out of memory" if process.is_out else safe(process.phase or "", theme)
    return line(
        f"{INDENT}{shown}{' ' * (18 - cells(shown))}  {step:>8}  ",
        Span(f"{shorten(phase, 13, mark=theme.glyph('cut')):<13}", "bad" if process.is_out else ""),
        "  ",
        *_figure(process.allocated.points, process.device_bytes, "bar0", theme),
        "  ",
        *_figure(process.host.points, process.host_bytes, "bar2", theme),
    )


def _figure(
    points: Sequence[Point], now: int | None, style: str, theme: Theme
) -> tuple[Span | str, ...]:
    """Return a line of blocks with the latest figure behind it, 25 columns wide."""
    size = "" if now is None else format_size(now)
    return Span(spark(points, theme), style), f" {size:>12}"


def _phases(book: Book, theme: Theme) -> list[Line]:
    """Return the peaks of each phase, the highest of all processes."""
    peaks: dict[str, list[PhasePeaks]] = {}
    for process in book.processes.values():
        for name, one in process.phases.items():
            peaks.setdefault(name, []).append(one)
    if not peaks:
        return []
    lines = [heading("Peaks by phase")]
    wide = max(cells(name) for name in peaks)
    for name, found in peaks.items():
        device = max((one.device_bytes or 0 for one in found), default=0)
        host = max((one.host_bytes or 0 for one in found), default=0)
        words = [f"{format_size(device)} on the card"] if device else []
        words += [f"{format_size(host)} on the host"] if host else []
        shown = safe(name, theme)
        lines.append(line(f"{INDENT}{shown}{' ' * (wide - cells(shown))}  {', '.join(words)}"))
    return lines


def spark(points: Sequence[Point], theme: Theme) -> str:
    """Return the course of a series as blocks, from its lowest to its highest value."""
    if not points:
        return " " * SPARK_CELLS
    blocks = SPARKS if theme.unicode else ASCII_SPARKS
    columns = []
    count = min(SPARK_CELLS, len(points))
    for column in range(count):
        held = points[len(points) * column // count : len(points) * (column + 1) // count]
        columns.append(max(one.low for one in held))
    low, high = min(columns), max(columns)
    span = max(high - low, high // 50, 1)  # a change of two percent fills no line
    drawn = "".join(blocks[min((one - low) * 8 // span, 7)] for one in columns)
    return f"{drawn:<{SPARK_CELLS}}"
