"""What a counted data set says in the words of the registry, for rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import Fact, Quote
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from oomdoctor.data.report import DataReport
    from oomdoctor.data.tally import Place
    from oomdoctor.model.core import Value


def facts_of(report: DataReport) -> tuple[Fact, ...]:
    """Return the facts of a report; what rests on an assumed batch or limit is itself assumed."""
    counted = f"counted with {report.tokenizer}"
    longest = tuple(quote_of(place) for place in report.longest[:1])
    facts = [
        Fact(
            key=key,
            value=value,
            quotes=longest if key == "data.longest_row" else (),
            source=counted,
        )
        for key, value in _counted(report).items()
    ]
    return (*facts, *_calculated(report))


def quote_of(place: Place) -> Quote:
    """Return where a row stands; its text is what was counted, not what it says."""
    text = f"{place.tokens:,} tokens, {place.characters:,} characters ({place.layout})"
    return Quote(artifact=place.name, line=place.line, text=text)


def _counted(report: DataReport) -> dict[str, Value]:
    lengths = report.lengths
    found: dict[str, Value] = {
        "data.rows": report.rows,
        "data.bad_rows": report.bad_rows,
        "data.sequences": lengths.count,
        "data.tokens": lengths.tokens,
        "data.shortest_row": lengths.shortest,
        "data.longest_row": lengths.longest,
        "data.p50_row": lengths.quantile(0.50),
        "data.p95_row": lengths.quantile(0.95),
        "data.p99_row": lengths.quantile(0.99),
        "data.mean_row": lengths.tokens / lengths.count,
    }
    if report.characters:
        found["data.chars_per_token"] = report.chars_per_token
    return found


def _calculated(report: DataReport) -> list[Fact]:
    batch = f"{report.batch.value} rows per pass ({report.batch.source})"
    limit = f"limit {report.capacity.value} ({report.capacity.source})"
    waste = {one.key: one.waste for one in report.strategies}
    told = next((one.key for one in report.strategies if one.in_force), "longest")
    padded = 1.0 - report.packings[0].efficiency if report.packed else waste[told]
    values: list[tuple[str, Value, str]] = [
        ("data.padding_waste", padded, f"{batch}, {limit}"),
        ("data.padding_waste_max", waste["max_length"], limit),
        ("data.padding_waste_sorted", waste["by_length"], batch),
        ("data.packing_efficiency", report.packings[0].efficiency, limit),
        ("data.peak_tokens", report.peak.largest.tokens, batch),
        ("data.median_tokens", report.peak.median.tokens, batch),
        ("data.peak_factor", report.peak.factor, batch),
    ]
    if report.limit is not None:
        rows, cut = report.over_limit
        values += [
            ("data.over_limit_rows", rows, limit),
            ("data.over_limit_share", rows / report.lengths.count, limit),
            ("data.cut_share", cut / report.lengths.tokens, limit),
        ]
    if report.peak.largest.parts:
        values += [
            ("data.peak_bytes", report.peak.largest.bytes, batch),
            ("data.median_bytes", report.peak.median.bytes, batch),
        ]
    quotes = tuple(quote_of(place) for place in report.longest[:1])
    return [
        Fact(
            key=key,
            value=value,
            origin=Origin.ASSUMED if "assumed" in source else Origin.DERIVED,
            quotes=quotes if key in ("data.over_limit_rows", "data.peak_tokens") else (),
            source=source,
        )
        for key, value, source in values
    ]
