"""The parts of an estimate's page that compare: limits, batch and length, what-if, settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.estimate import FITS, OOM, TIGHT
from oomdoctor.render.estimate_words import minus, verdict_words
from oomdoctor.render.page import HeatCell, HeatMap, Section, Table
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from oomdoctor.model.estimate import CardVerdict, Estimate, Variant

GIB = 1 << 30
HEADERS = ("changed", "allocated", "reserved", "difference", "verdicts")
WORDS = (
    (FITS, "fits"),
    (TIGHT, "tight: what is outside the allocator, or the estimate's error, decides"),
    (OOM, "out of memory"),
)


def limits(made: Estimate) -> Section | None:
    """Return the largest batch and length on each card."""
    if not made.limits:
        return None
    by_card: dict[str, dict[str, str]] = {}
    for one in made.limits:
        words = f"{format_count(one.largest)}{' or more' if one.capped else ''}"
        by_card.setdefault(one.card, {})[one.what] = words if one.largest else "none"
    rows = tuple(
        (card, found.get("batch", ""), found.get("length", "")) for card, found in by_card.items()
    )
    return Section(
        title="How far it goes",
        table=Table(
            caption="The largest that surely fits, all else as in the job",
            headers=("card", "rows at this length", "length at this batch"),
            rows=rows,
            numeric=frozenset({1, 2}),
        ),
    )


def heat_table(made: Estimate) -> Section | None:
    """Return the batch x length table as a heat map, judged on the first card."""
    table = made.table
    if table is None:
        return None
    told = any(one.verdicts for row in table.rows for one in row)
    judged = made.verdicts[0] if told else None
    lengths = tuple(format_count(one) if one else "any" for one in table.lengths)
    rows = tuple(
        (
            format_count(batch),
            tuple(
                HeatCell(
                    f"{(one.reserved_bytes or one.allocated_bytes) / GIB:.1f}",
                    one.verdicts[0] if one.verdicts else "",
                )
                for one in row
            ),
        )
        for batch, row in zip(table.batches, table.rows, strict=True)
    )
    on = f", judged on {judged.card} ({format_size(judged.capacity_bytes)})" if judged else ""
    kind = "Reserved" if made.peak_reserved_bytes is not None else "Allocated"
    return Section(
        title="Batch and length",
        sentences=(table.how,),
        heat=HeatMap(
            caption=f"{kind} GiB at the peak{on}",
            down="batch",
            across="tokens",
            columns=lengths,
            rows=rows,
            words=WORDS if judged else (),
        ),
    )


def compared(title: str, variants: tuple[Variant, ...], made: Estimate) -> Section | None:
    """Return variants of the job side by side."""
    if not variants:
        return None
    replays = [made.peak_reserved_bytes, *(one.peak_reserved_bytes for one in variants)]
    told = {"reserved": any(one is not None for one in replays)}
    rows = [_own_row(made)] if title == "What if" else []
    for one in variants:
        both = made.peak_reserved_bytes is not None and one.peak_reserved_bytes is not None
        grown = one.peak_allocated_bytes - made.peak_allocated_bytes
        if both:
            grown = (one.peak_reserved_bytes or 0) - (made.peak_reserved_bytes or 0)
        rows.append(
            (
                one.name,
                *_peaks(one.peak_allocated_bytes, one.peak_reserved_bytes),
                minus(grown),
                _judged(one.verdicts),
            )
        )
    spoke = {one.engine for one in variants} - {made.engine}
    mixed = ("Not all of these are simulated: see the engine of each in JSON.",) if spoke else ()
    notes = tuple(dict.fromkeys(f"{one.note}." for one in variants if one.note))
    return Section(
        title=title,
        sentences=(*mixed, *notes),
        table=Table(
            caption="Side by side",
            headers=tuple(name for name in HEADERS if told.get(name, True)),
            rows=tuple(
                tuple(cell for name, cell in zip(HEADERS, row, strict=True) if told.get(name, True))
                for row in rows
            ),
            numeric=frozenset(range(1, 4 if told["reserved"] else 3)),
        ),
    )


def _own_row(made: Estimate) -> tuple[str, str, str, str, str]:
    peaks = _peaks(made.peak_allocated_bytes, made.peak_reserved_bytes)
    return ("as it is", *peaks, "", _judged(made.verdicts))


def _peaks(allocated: int, reserved: int | None) -> tuple[str, str]:
    return format_size(allocated), "" if reserved is None else format_size(reserved)


def _judged(verdicts: tuple[CardVerdict, ...]) -> str:
    if len(verdicts) == 1:
        return verdict_words(verdicts[0].verdict)
    fitting = [one.card for one in verdicts if one.verdict == FITS]
    smallest = min(
        (one for one in verdicts if one.verdict == FITS),
        key=lambda one: one.capacity_bytes,
        default=None,
    )
    if smallest is None:
        return "fits none of them"
    return f"fits {len(fitting)} of {len(verdicts)}, from {smallest.card} on"
