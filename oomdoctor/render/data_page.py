"""A counted data set laid out as a page: the answer, lengths, padding, packing, the peak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.page import Chart, ChartBar, Figure, Page, Section, Table
from oomdoctor.render.words import percent
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from oomdoctor.data.peak import Batch
    from oomdoctor.data.report import DataReport

BARS = 20
LONG_ROWS = 10
PARTS = 2


def data_page(report: DataReport) -> Page:
    """Return the page of a report."""
    sections = (_lengths(report), _longest(report), _padding(report), _packing(report))
    return Page(
        title=_title(report),
        lead=_lead(report),
        figures=_figures(report),
        sections=(*sections, _peak(report), *_faults(report)),
        notes=report.notes,
    )


def _title(report: DataReport) -> str:
    name = report.files[0].path if report.files[0].path != "-" else "standard input"
    more = f" and {len(report.files) - 1} more files" if len(report.files) > 1 else ""
    return f"{name}{more}: {rows_words(report.rows)}, {format_count(report.lengths.tokens)} tokens"


def rows_words(count: int) -> str:
    """Print a number of rows: `1 row`, `12,345 rows`."""
    return f"{format_count(count)} row{'' if count == 1 else 's'}"


def _lead(report: DataReport) -> tuple[str, ...]:
    sentences = []
    rows, cut = report.over_limit
    if report.limit is not None:
        said = f"the limit of {format_count(report.limit.value)} tokens ({report.limit.source})"
        if rows:
            share = percent(rows / report.lengths.count)
            lost = percent(cut / report.lengths.tokens)
            sentences.append(
                f"{rows_words(rows)} ({share}) exceed{'s' if rows == 1 else ''} {said}:"
                f" {format_count(cut)} tokens, {lost} of"
                " all, are cut off."
            )
        else:
            sentences.append(f"No row exceeds {said}.")
    else:
        sentences.append("No limit is in force: no row is cut, and the longest one sets the peak.")
    peak = report.peak
    if peak.constant:
        sentences.append(
            f"All batches have {format_count(peak.largest.tokens)} tokens, so the first step shows"
            " the peak."
        )
    else:
        sentences.append(
            f"The largest batch has {format_count(peak.largest.tokens)} tokens,"
            f" {peak.factor:.1f} times the median batch; it comes once in every epoch."
        )
    return tuple(sentences)


def _figures(report: DataReport) -> tuple[Figure, ...]:
    lengths = report.lengths
    found = [
        Figure("median row", f"{format_count(lengths.quantile(0.5))} tokens"),
        Figure("95 of 100 rows", f"up to {format_count(lengths.quantile(0.95))} tokens"),
        Figure("99 of 100 rows", f"up to {format_count(lengths.quantile(0.99))} tokens"),
        Figure("longest row", f"{format_count(lengths.longest)} tokens"),
        Figure("mean row", f"{lengths.tokens / lengths.count:,.1f} tokens"),
    ]
    if report.characters:
        found.append(Figure("characters per token", f"{report.chars_per_token:.2f}"))
    layouts = ", ".join(f"{name} {format_count(count)}" for name, count in report.layouts)
    found.append(Figure("layout", layouts, f"chat template: {report.template}"))
    if report.bad_rows:
        found.append(Figure("not counted", rows_words(report.bad_rows), "see below"))
    return tuple(found)


def _lengths(report: DataReport) -> Section:
    limit = report.limit.value if report.limit else None
    bars = []
    whole = report.lengths.count
    for bar in report.lengths.bars(BARS):
        note = f"{format_count(bar.number)}, {percent(bar.number / whole):>5}"
        over = limit is not None and bar.low >= limit
        bars.append(ChartBar(f"{bar.low:,} to {bar.high:,}", bar.number, note, over))
    marked = any(bar.marked for bar in bars)
    what = "sequences" if whole != report.rows else "rows"
    return Section(
        title="Lengths",
        chart=Chart(
            caption=f"How many {what} have how many tokens",
            label="tokens",
            bars=tuple(bars),
            legend=f"longer than the limit of {limit:,}" if marked and limit is not None else "",
        ),
    )


def _longest(report: DataReport) -> Section:
    limit = report.limit.value if report.limit else None
    shown = report.longest[:LONG_ROWS]
    rows = tuple(
        (
            f"{one.name}:{one.line}",
            format_count(one.tokens),
            format_count(one.characters) if one.characters else "",
            "" if limit is None or one.tokens <= limit else f"{one.tokens - limit:,} cut",
        )
        for one in shown
    )
    return Section(
        title="Longest rows",
        table=Table(
            caption="The longest rows, with their lines",
            headers=("place", "tokens", "characters", "over the limit"),
            rows=rows,
            numeric=frozenset((1, 2, 3)),
        ),
    )


def _padding(report: DataReport) -> Section:
    said = f"{report.batch.value} rows per pass ({report.batch.source})"
    rows = tuple(
        (
            one.name + (" (in force)" if one.in_force else ""),
            format_count(one.computed),
            percent(one.waste),
        )
        for one in report.strategies
    )
    return Section(
        title="Padding",
        sentences=(f"With {said}. Figures of random batches are the mean over all possible ones.",),
        table=Table(
            caption="Tokens of an epoch by how rows are padded",
            headers=("padded", "tokens computed", "of it padding"),
            rows=rows,
            numeric=frozenset((1, 2)),
            marked=frozenset(at for at, one in enumerate(report.strategies) if one.in_force),
        ),
    )


def _packing(report: DataReport) -> Section:
    said = f"{format_count(report.capacity.value)} tokens ({report.capacity.source})"
    meanings = {
        "best fit": "whole sequences; what is too long is cut",
        "wrapped": "joined and cut: up to {} sequences go on in the next row",
    }
    rows = tuple(
        (
            one.name,
            format_count(one.rows),
            percent(one.efficiency),
            meanings[one.name].format(format_count(one.cut_rows)),
        )
        for one in report.packings
    )
    return Section(
        title="Packing",
        sentences=(f"Into rows of {said}.{' The job packs.' if report.packed else ''}",),
        table=Table(
            caption="What packing would give",
            headers=("way", "rows", "filled", "sequences"),
            rows=rows,
            numeric=frozenset((1, 2)),
        ),
    )


def _peak(report: DataReport) -> Section:
    peak = report.peak
    headers, rows = ["batch", "rows", "padded to", "tokens"], []
    parts = [part.name for part in peak.largest.parts]
    for name, batch in (("largest", peak.largest), ("median", peak.median)):
        cells = [name, format_count(batch.rows), format_count(batch.length)]
        rows.append((*cells, format_count(batch.tokens), *_sizes(batch)))
    headers += [*parts, "together"] if parts else []
    return Section(
        title="The batch that will be the peak",
        sentences=tuple(_peak_words(report)),
        table=Table(
            caption="The largest and the median batch",
            headers=tuple(headers),
            rows=tuple(rows),
            numeric=frozenset(range(1, len(headers))),
        ),
    )


def _sizes(batch: Batch) -> list[str]:
    if not batch.parts:
        return []
    return [*(format_size(part.bytes) for part in batch.parts), format_size(batch.bytes)]


def _peak_words(report: DataReport) -> list[str]:
    peak = report.peak
    if not peak.largest.parts:
        missing = ", ".join(peak.missing) or "facts of the model"
        return [f"In tokens: bytes need {missing} (--config, --fact, or the model's config.json)."]
    more = peak.largest.bytes - peak.median.bytes
    sentences = []
    if not peak.constant and report.longest:
        place = report.longest[0]
        sentences.append(
            f"The batch with {place.name}:{place.line} takes {format_size(more)} more than the"
            " median one, by the formulas for what grows with a batch."
        )
    sentences += [f"{part.name}: {part.source}" for part in peak.largest.parts]
    if peak.missing and len(peak.largest.parts) < PARTS:
        sentences.append(f"Not known: {', '.join(peak.missing)}.")
    return sentences


def _faults(report: DataReport) -> tuple[Section, ...]:
    if not report.bad_rows:
        return ()
    kinds = "; ".join(f"{reason}: {format_count(count)}" for reason, count in report.faults[:5])
    rows = tuple((f"{one.name}:{one.line}", one.reason) for one in report.first_faults)
    more = report.bad_rows - len(rows)
    also = f" The first {len(rows)} are listed." if more else ""
    return (
        Section(
            title="Rows that were not counted",
            sentences=(f"{kinds}.{also}",),
            table=Table(
                caption="Rows that were not counted, and why",
                headers=("place", "reason"),
                rows=rows,
            ),
        ),
    )
