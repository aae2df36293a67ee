"""A plan laid out as a page: the best settings first, each with its peak and its price."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.estimate import FORMULA, SIMULATE, VIRTUAL
from oomdoctor.render.estimate_words import margin_words
from oomdoctor.render.page import Figure, Page, Section, Table
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.estimate import FitPlan, PlanStep

JUDGED = {SIMULATE: "simulation", FORMULA: "formula", VIRTUAL: "virtual card"}


def plan_page(plan: FitPlan) -> Page:
    """Return the page of a plan."""
    if not plan.steps:
        return _none(plan)
    first = plan.steps[0]
    return Page(
        title=f"{plan.card}: {len(plan.steps)} ways to train this",
        lead=(f"The best quality that fits: {first.notes[0]}.", flags(first.settings)),
        figures=_figures(plan),
        sections=(_ways(plan), _settings(plan)),
        notes=_notes(plan),
    )


def _none(plan: FitPlan) -> Page:
    least = plan.least_bytes
    needs = f" The smallest needs about {format_size(least)}." if least is not None else ""
    tried = f"None of {format_count(plan.tried)} settings fits on {plan.card}"
    size = format_size(plan.capacity_bytes)
    return Page(
        title=f"{plan.card}: nothing fits",
        lead=(f"{tried} ({size}).{needs}",),
        notes=_notes(plan),
    )


def _figures(plan: FitPlan) -> tuple[Figure, ...]:
    return (
        Figure("card", format_size(plan.capacity_bytes), "as it reports to PyTorch"),
        Figure("settings looked at", format_count(plan.tried)),
    )


def _ways(plan: FitPlan) -> Section:
    rows = tuple(_row(number, one) for number, one in enumerate(plan.steps, 1))
    return Section(
        title="Ways that fit",
        sentences=("Best quality first; each is the fastest of its kind that fits.",),
        table=Table(
            caption="Settings that fit",
            headers=("", "what", "batch", "checkpointing", "time", "peak", "free", "by"),
            rows=rows,
            numeric=frozenset({0, 4, 5, 6}),
        ),
    )


def _row(number: int, one: PlanStep) -> tuple[str, ...]:
    settings = one.settings
    return (
        str(number),
        _what(one),
        f"{settings['batch']} x {settings['grad-accum']}",
        "yes" if settings["checkpointing"] == "true" else "no",
        f"x {one.time_factor:.2f}",
        format_size(one.peak_reserved_bytes or one.peak_allocated_bytes),
        margin_words(one.verdict.margin_low_bytes),
        JUDGED[one.engine],
    )


def _what(one: PlanStep) -> str:
    """Print what is trained in a few words: `qlora, rank 16, all-linear, bf16`."""
    settings = one.settings
    words = [settings["method"]]
    if settings["method"] != "full":
        words.append(f"rank {settings.get('lora-r', '?')}")
        words.append(settings.get("lora-targets", "own targets"))
    amp = settings.get("amp", "none")
    words.append(settings.get("dtype", "") + (f" + {amp} autocast" if amp != "none" else ""))
    if settings.get("optimizer", "adamw") != "adamw":
        words.append(settings["optimizer"])
    return ", ".join(word for word in words if word)


def _settings(plan: FitPlan) -> Section:
    lines = tuple(f"{number}: {flags(one.settings)}" for number, one in enumerate(plan.steps, 1))
    return Section(title="As flags of `oomdoctor estimate`", sentences=lines)


def flags(settings: Mapping[str, str]) -> str:
    """Print settings as flags of `estimate`."""
    words = []
    for name, value in settings.items():
        if value in ("true", "false"):
            words.append(f"--{name}" if value == "true" else f"--no-{name}")
        else:
            words.append(f"--{name} {value}")
    return " ".join(words)


def _notes(plan: FitPlan) -> tuple[str, ...]:
    spoke = (f"Not simulated: {plan.fallback}.",) if plan.fallback else ()
    return (*spoke, *(f"Assumed: {one}." for one in plan.assumptions if one))
