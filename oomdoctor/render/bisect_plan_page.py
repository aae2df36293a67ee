"""The plan of a `bisect` laid out as a page: what would run, in which order, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.bisect_words import BACKENDS, value_words, values_words
from oomdoctor.render.estimate_words import job_words
from oomdoctor.render.page import Figure, Page, Section
from oomdoctor.render.words import percent
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from oomdoctor.model.bisect import AxisRange, BisectPlan


def bisect_plan_page(plan: BisectPlan) -> Page:
    """Return the page of a plan."""
    return Page(
        title="What would run",
        lead=(_subject(plan), f"Trials are {BACKENDS.get(plan.backend, plan.backend)}."),
        figures=_figures(plan),
        sections=_sections(plan),
        notes=tuple(f"{one.rstrip('.')}." for one in plan.notes),
    )


def _subject(plan: BisectPlan) -> str:
    if plan.command is not None:
        return f"The command `{' '.join(plan.command.arguments)}`."
    if plan.job is not None:
        return f"{plan.job.model.name}: {job_words(plan.job)}."
    return "Nothing."


def _figures(plan: BisectPlan) -> tuple[Figure, ...]:
    found = [Figure(f"axis {one.name}", *_range(one)) for one in plan.axes]
    if plan.card:
        found.append(Figure("card", plan.card))
    if plan.limit_bytes is not None:
        what = "cap of every trial" if plan.cap_bytes is not None else "what a trial can have"
        found.append(Figure("limit", format_size(plan.limit_bytes), what))
    start = plan.start
    if start.engine is not None:
        found.append(Figure("estimate", start.engine, f"+-{percent(start.error)}"))
    elif start.why_not:
        found.append(Figure("estimate", "none", start.why_not))
    few = f"{format_count(len(plan.expected))} if the estimate is right, " if plan.expected else ""
    most = f"{few}{format_count(plan.most)} at worst"
    found.append(Figure("trials", most, f"{format_count(plan.width)} at a time"))
    worst = f"the first ends after {plan.seconds_each:.0f} s at the latest"
    found.append(Figure("time", "10 x the longest that fits", f"per trial; {worst}"))
    return tuple(found)


def _range(axis: AxisRange) -> tuple[str, str]:
    """Print the range of an axis and its steps."""
    ends = f"{value_words(axis.low)} to {value_words(axis.high)}"
    kind = f"steps of {value_words(axis.step)}, memory of the {axis.memory}"
    return ends, kind


def _sections(plan: BisectPlan) -> tuple[Section, ...]:
    if not plan.expected:
        return ()
    lines = tuple(f"{at}: {values_words(one)}" for at, one in enumerate(plan.expected, 1))
    return (Section(title="The trials if the estimate is right", sentences=lines),)
