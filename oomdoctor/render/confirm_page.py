"""The verdicts of `confirm` as a page: what is proven first, then the runs that show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.trial import CONFIRMED, FIT, HOST_OOM, INCONCLUSIVE, OOM, REFUTED
from oomdoctor.render.bisect_words import BACKENDS, figures_words, outcome_words
from oomdoctor.render.estimate_words import job_words
from oomdoctor.render.page import Chart, ChartBar, Figure, Page, Section, Table
from oomdoctor.render.words import percent
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.confirm import Confirmed, PlannedTest
    from oomdoctor.model.trial import Confirmation, TrialResult

_SIGNS = {CONFIRMED: "✔ confirmed", REFUTED: "✖ refuted", INCONCLUSIVE: "? inconclusive"}


def confirm_page(made: Confirmed) -> Page:
    """Return the page of a run; without verdicts, that of its plan."""
    if not made.confirmations:
        return _plan_page(made)
    sections = [_verdict(one) for one in made.confirmations]
    return Page(
        title=_title(made.confirmations),
        lead=_lead(made),
        figures=_figures(made),
        sections=(*sections, *_ranking(made), *_minimal(made)),
        notes=_notes(made),
    )


def _title(verdicts: Sequence[Confirmation]) -> str:
    proven = [one.cause for one in verdicts if one.verdict == CONFIRMED]
    refuted = [one.cause for one in verdicts if one.verdict == REFUTED]
    if proven:
        return f"Confirmed: {', '.join(proven)}"
    if refuted and len(refuted) == len(verdicts):
        return f"Refuted: {', '.join(refuted)}"
    return "Nothing is proven"


def _lead(made: Confirmed) -> tuple[str, ...]:
    found = [f"{_subject(made)}; {BACKENDS.get(made.backend, made.backend)}."]
    if made.stopped:
        found.insert(0, f"Ended early: {made.stopped}.")
    return tuple(found)


def _subject(made: Confirmed) -> str:
    if made.command is not None:
        return f"The command `{' '.join(made.command.arguments)}`"
    return "Trials" if made.job is None else f"{made.job.model.name}: {job_words(made.job)}"


def _figures(made: Confirmed) -> tuple[Figure, ...]:
    found = []
    if made.cap_bytes is not None:
        found.append(Figure("cap", format_size(made.cap_bytes), "of every trial's allocator"))
    if made.card:
        found.append(Figure("card", made.card))
    failed = sum(one.outcome in (OOM, HOST_OOM) for one in made.trials)
    ran = f"{format_count(failed)} of them out of memory, {made.seconds:.1f} s in all"
    if made.replayed:
        ran += f", {format_count(made.replayed)} from the journal"
    found.append(Figure("trials", format_count(len(made.trials)), ran))
    return tuple(found)


def _verdict(one: Confirmation) -> Section:
    sentences = [f"{_sentence(one.reason)}"]
    saved = saving_words(one)
    if saved:
        sentences.append(saved)
    sentences += _growth(one)
    runs = [
        (name, result)
        for name, results in (
            ("as it is", one.baseline),
            ("treated", one.treated),
            ("control", one.control),
            ("as it is, without a cap", one.whole),
        )
        for result in results
    ]
    code = f", {one.code}" if one.code else ""
    return Section(
        title=f"{_SIGNS[one.verdict]}: {one.cause}{code}",
        sentences=tuple(sentences),
        table=_runs(one, runs) if runs else None,
    )


def _growth(one: Confirmation) -> list[str]:
    """Say what is held more after each step, before and after, and where."""
    if not one.growth_bytes:
        return []
    then = "" if one.treated_growth_bytes is None else _treated_growth(one.treated_growth_bytes)
    found = [f"After each step {format_size(one.growth_bytes)} more is held{then}."]
    return found + [_sentence(site) for site in one.sites]


def _treated_growth(count: int) -> str:
    return f", when treated {format_size(count)}" if count else ", when treated nothing"


def saving_words(one: Confirmation) -> str:
    """Print what a change saved, and what it was expected to."""
    parts = []
    if one.measured_saving_bytes is not None and one.treated:
        least = "at least " if one.at_least else ""
        if one.measured_saving_bytes >= 0:
            parts.append(f"It saves {least}{format_size(one.measured_saving_bytes)}")
        else:
            parts.append(f"It takes {format_size(-one.measured_saving_bytes)} more")
    if one.predicted_saving_bytes is not None:
        predicted = format_size(one.predicted_saving_bytes)
        parts.append(f"predicted: {predicted}" if parts else f"It was to save {predicted}")
    return "; ".join(parts) + "." if parts else ""


def _runs(one: Confirmation, runs: Sequence[tuple[str, TrialResult]]) -> Table:
    return Table(
        caption=f"The treated run has {one.title}" if one.title else "The runs",
        headers=("run", "outcome", "peak", "fails at"),
        rows=tuple(
            (
                name,
                outcome_words(result),
                figures_words(result)[0] if figures_words(result) else "-",
                _place(result),
            )
            for name, result in runs
        ),
        numeric=frozenset({2}),
        marked=frozenset(n for n, (_, result) in enumerate(runs) if result.outcome != FIT),
    )


def _place(result: TrialResult) -> str:
    if result.outcome == FIT:
        return "-"
    phase = result.phases[-1].name if result.phases else ""
    site = result.identity.site if result.identity is not None else None
    return ", ".join(part for part in (phase, site) if part) or "-"


def _ranking(made: Confirmed) -> tuple[Section, ...]:
    if len(made.before) < 2 or dict(made.before) == dict(made.after):
        return ()
    bars = tuple(
        ChartBar(
            cause,
            share,
            f"{percent(share)}, before {percent(made.before[cause])}",
            marked=any(
                one.cause == cause and one.verdict == CONFIRMED for one in made.confirmations
            ),
        )
        for cause, share in made.after.items()
    )
    chart = Chart(
        caption="Probability of each cause after the experiments",
        label="cause",
        bars=bars,
        legend="confirmed",
        amount="probability",
    )
    return (Section(title="What that does to the ranking", chart=chart),)


def _minimal(made: Confirmed) -> tuple[Section, ...]:
    fixes = made.minimal
    if fixes is None:
        return ()
    if not fixes.fits:
        why = f": {fixes.reason}" if fixes.reason else ""
        text = f"No set of the changes that could be made here removes the failure{why}."
        return (Section(title="The cheapest changes", sentences=(text,)),)
    if not fixes.titles:
        text = "The run fits as it is; nothing has to be changed."
        return (Section(title="The cheapest changes", sentences=(text,)),)
    needed = "none of them can be left out" if fixes.proven else "one of them may be too many"
    sentences = [f"These remove the failure, and {needed}:"]
    sentences += [
        f"{number}. {title} [{name}]"
        for number, (title, name) in enumerate(zip(fixes.titles, fixes.names, strict=True), 1)
    ]
    if fixes.unresolved:
        sentences.append(
            f"Left aside, since their trials told nothing: {', '.join(fixes.unresolved)}."
        )
    sentences += [f"Written: {path}" for path in fixes.patched]
    return (Section(title="The cheapest changes", sentences=tuple(sentences)),)


def _plan_page(made: Confirmed) -> Page:
    rows = tuple(_planned(one) for one in made.planned)
    table = Table(
        caption="One experiment for each cause, the most telling first",
        headers=("cause", "probability", "the treated run has", "how"),
        rows=rows,
        numeric=frozenset({1}),
    )
    some = [one for one in made.planned if one.experiment]
    price = (
        f"At most {format_count(made.trials_at_most)} trials, of which "
        f"{format_count(made.failing)} should run out of memory; a run near the edge is repeated."
    )
    return Page(
        title=f"{len(some)} of {len(made.planned)} causes can be tested",
        lead=(*_lead(made), price) if some else _lead(made),
        figures=_figures(made)[:-1],
        sections=(Section(title="The plan", table=table),),
        notes=_notes(made),
    )


def _planned(one: PlannedTest) -> tuple[str, str, str, str]:
    share = percent(one.probability)
    if one.experiment is None:
        return one.cause, share, "-", one.reason
    return one.cause, share, one.title, one.way


def _notes(made: Confirmed) -> tuple[str, ...]:
    found = list(made.notes)
    found += [note for one in made.trials for note in one.assumptions]
    if made.folder is not None:
        found.append(f"Journal, output of every trial and run.sh: {made.folder}")
    return tuple(dict.fromkeys(found))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith(".") else ".")
