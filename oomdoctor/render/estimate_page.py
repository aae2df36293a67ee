"""An estimate laid out as a page: the peak and the verdicts first, then what they rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.bands import FRAGMENTED
from oomdoctor.model.estimate import FORMULA, OOM, SIMULATE
from oomdoctor.render.estimate_compared import compared, heat_table, limits
from oomdoctor.render.estimate_serving import serving_sections, serving_words
from oomdoctor.render.estimate_words import (
    job_words,
    margin_words,
    named_part,
    verdict_words,
)
from oomdoctor.render.page import (
    Chart,
    ChartBar,
    Curve,
    CurvePoint,
    Figure,
    Page,
    Section,
    Table,
)
from oomdoctor.render.words import percent
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from oomdoctor.model.estimate import CardVerdict, Estimate


def estimate_page(made: Estimate) -> Page:
    """Return the page of an estimate."""
    sections = (
        _cards(made),
        *serving_sections(made),
        _parts(made),
        _owners(made),
        _phases(made),
        limits(made),
        heat_table(made),
        compared("What if", made.variants, made),
        compared("Settings of the allocator", made.alloc_confs, made),
    )
    return Page(
        title=f"{made.job.model.name}: {format_size(_needed(made))} at the peak",
        lead=_lead(made),
        figures=_figures(made),
        sections=tuple(one for one in sections if one is not None),
        notes=_notes(made),
    )


def _needed(made: Estimate) -> int:
    """Return what must be reserved; a server's peak is that already."""
    if made.peak_reserved_bytes is not None:
        return made.peak_reserved_bytes
    return int(made.peak_allocated_bytes * (1 if made.serving is not None else FRAGMENTED))


def _lead(made: Estimate) -> tuple[str, ...]:
    spoke = "Computed by formula, not simulated."
    if made.engine != FORMULA:
        spoke = f"{made.origin[:1].upper()}{made.origin[1:]}."
    if made.fallback is not None:
        spoke += f" Why: {made.fallback}."
    words = job_words(made.job) if made.serving is None else serving_words(made, made.serving)
    return (f"{words}.", spoke)


def _figures(made: Estimate) -> tuple[Figure, ...]:
    low, high = made.outside_low_bytes, made.outside_high_bytes
    band = f"+-{percent(made.band)}, in {made.peak_phase or 'the run'}"
    found = [Figure("allocated at the peak", format_size(made.peak_allocated_bytes), band)]
    whole = _needed(made)
    if made.serving is None:
        idle = f"{format_size(whole - made.peak_allocated_bytes)} more than allocated"
        if made.peak_reserved_bytes is None:
            idle = f"{percent(FRAGMENTED - 1)} more than allocated, as is usual"
        said = f"+-{percent(made.need_band)}, {idle}: cache and fragments"
        found.append(Figure("reserved at the peak", format_size(whole), said))
    outside = f"{format_size(low)} to {format_size(high)}"
    found.append(Figure("outside the allocator", outside, made.outside_says))
    total = f"{format_size(whole + low)} to {format_size(whole + high)}"
    found.append(Figure("on the card in all", total))
    if made.host_bytes is not None:
        found.append(Figure("host memory", format_size(made.host_bytes), "formula"))
    if made.rates is not None:
        row = "one row more" if made.serving is None else "one request more"
        found.append(Figure(row, f"+{format_size(made.rates.row_bytes)}"))
        if made.rates.thousand_tokens_bytes is not None:
            size = format_size(made.rates.thousand_tokens_bytes)
            where = "in each row" if made.serving is None else "in one request"
            found.append(Figure("1,000 tokens more", f"+{size}", where))
    return tuple(found)


def _cards(made: Estimate) -> Section:
    rows = tuple(_card(one) for one in made.verdicts)
    marked = frozenset(at for at, one in enumerate(made.verdicts) if one.verdict == OOM)
    failed = tuple(f"{one.card}: {one.failed}." for one in made.verdicts if one.failed)
    return Section(
        title="Cards",
        sentences=failed,
        table=Table(
            caption="The verdict on each card, and what stays free",
            headers=("card", "reports", "verdict", "free at least", "free at most"),
            rows=rows,
            numeric=frozenset({1, 3, 4}),
            marked=marked,
        ),
    )


def _card(one: CardVerdict) -> tuple[str, ...]:
    return (
        one.card,
        format_size(one.capacity_bytes),
        verdict_words(one.verdict),
        margin_words(one.margin_low_bytes),
        margin_words(one.margin_high_bytes),
    )


def _parts(made: Estimate) -> Section | None:
    if not made.parts:
        return None
    whole = made.peak_allocated_bytes or 1
    bars = tuple(
        ChartBar(one.name, one.bytes, f"{format_size(one.bytes)} {percent(one.bytes / whole):>6}")
        for one in made.parts
        if one.bytes
    )
    inner = [one for one in made.categories if one.bytes]
    fine = ", ".join(f"{one.name} {format_size(one.bytes)}" for one in inner)
    formulas = tuple(f"{one.name}: {one.formula}." for one in made.parts if one.formula)
    sentences = (f"In detail: {fine}.",) if fine else ()
    return Section(
        title="What the peak is made of",
        sentences=(*sentences, *formulas),
        chart=Chart(caption="Allocated bytes at the peak", label="part", bars=bars, amount="bytes"),
    )


def _owners(made: Estimate) -> Section | None:
    if not made.owners:
        return None
    rows = tuple(
        (
            format_size(one.bytes),
            format_count(one.allocations),
            one.module or "(outside of modules)",
            one.operator,
            one.category,
            named_part(one.phase, one.part),
        )
        for one in made.owners
    )
    return Section(
        title="Largest owners at the peak",
        table=Table(
            caption="Who holds most of the peak; layers are put together as *",
            headers=("size", "count", "module", "operator", "is", "made in"),
            rows=rows,
            numeric=frozenset({0, 1}),
        ),
    )


def _phases(made: Estimate) -> Section | None:
    if not made.phases:
        return None
    simulated = any(one.reserved_bytes is not None for one in made.phases)
    rows = tuple(
        (
            one.name,
            format_size(one.allocated_bytes),
            *([format_size(one.reserved_bytes or 0)] if simulated else []),
        )
        for one in made.phases
    )
    marked = frozenset(at for at, one in enumerate(made.phases) if one.name == made.peak_phase)
    headers = ("phase", "allocated", *(["reserved"] if simulated else []))
    return Section(
        title="Phases",
        curve=_curve(made),
        table=Table(
            caption="The peak within each phase",
            headers=headers,
            rows=rows,
            numeric=frozenset({1, 2}),
            marked=marked,
        ),
    )


def _curve(made: Estimate) -> Curve | None:
    if not made.line:
        return None
    ends = [*(one.at for one in made.line[1:]), made.line[-1].at + 1]
    points = tuple(
        CurvePoint(one.allocated_bytes, named_part(one.phase, one.part), max(end - one.at, 1))
        for one, end in zip(made.line, ends, strict=True)
    )
    return Curve(
        caption="Allocated bytes over the run, counted in allocations and frees",
        points=points,
        top=format_size(max(one.value for one in points)),
    )


def _notes(made: Estimate) -> tuple[str, ...]:
    told = tuple(f"{one[:1].upper()}{one[1:]}." for one in made.told)
    traced = f"The kernels are those of {made.device}." if made.device else ""
    settings = f"The allocator's settings are {made.alloc_conf}." if made.alloc_conf else ""
    used = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    what = "simulation" if made.engine == SIMULATE else "run"
    versions = f"Libraries of the {what}: {used}." if used else ""
    assumed = tuple(f"Assumed: {one}." for one in made.assumptions)
    return (*told, *assumed, *(one for one in (traced, settings, versions) if one))
