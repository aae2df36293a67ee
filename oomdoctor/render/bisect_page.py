"""A threshold laid out as a page: the edge and the safe value first, then what they rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.trial import CRASH, FIT, HOST_OOM, OOM, TIMEOUT
from oomdoctor.render.bisect_notes import notes_of, on_host
from oomdoctor.render.bisect_pictures import frontier_heat, frontier_plot, threshold_plot
from oomdoctor.render.bisect_words import (
    BACKENDS,
    OF_THE_HOST,
    figures_words,
    identity_words,
    outcome_words,
    value_words,
    values_words,
)
from oomdoctor.render.estimate_words import job_words
from oomdoctor.render.page import Figure, Page, Section, Table
from oomdoctor.render.words import percent
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from oomdoctor.model.bisect import Bisected
    from oomdoctor.model.trial import Bracket, Curve, SearchAnswer, TrialResult

_UNRESOLVED = (CRASH, TIMEOUT)


def bisect_page(made: Bisected) -> Page:
    """Return the page of a run."""
    return Page(
        title=_title(made),
        lead=_lead(made),
        figures=_figures(made),
        sections=tuple(
            one
            for one in (_curve(made), _frontier(made), _best(made), _trials(made), _slipped(made))
            if one is not None
        ),
        notes=notes_of(made),
    )


def _title(made: Bisected) -> str:
    if made.answer is not None:
        return edge_words(made.answer.bracket)
    if made.frontier is not None and made.frontier.rows:
        return f"The largest {made.frontier.inner} for each {made.frontier.outer}"
    return "Nothing was found"


def edge_words(bracket: Bracket) -> str:
    """Print a bracket: `batch 37 fits, 38 does not`."""
    name = bracket.axis
    fits = None if bracket.fits_at is None else value_words(bracket.fits_at)
    ooms = None if bracket.ooms_at is None else value_words(bracket.ooms_at)
    if fits is None and ooms is None:
        return f"{name}: no trial has told anything"
    if ooms is None:
        beyond = "the range ends there" if bracket.proven else "none was seen to fail"
        return f"{name} {fits} fits, and {beyond}"
    if fits is None:
        return f"{name} {ooms} does not fit, and nothing smaller was seen to"
    return f"{name} {fits} fits, {ooms} does not"


def _lead(made: Bisected) -> tuple[str, ...]:
    found = []
    if made.stopped:
        found.append(f"Ended early: {made.stopped}. This is the best so far.")
    if made.answer is not None:
        found.append(_proof(made.answer))
    how = OF_THE_HOST if on_host(made) else BACKENDS.get(made.backend, made.backend)
    found.append(f"{_subject(made)}; {how}.")
    return tuple(found)


def _proof(answer: SearchAnswer) -> str:
    bracket = answer.bracket
    if bracket.proven:
        how = "twice" if bracket.fits == 2 else f"{bracket.fits} times"
        if bracket.ooms_at is None:
            return f"Proven: the last value of the range fitted {how}."
        if bracket.fits_at is None:
            return "Proven: the first value of the range failed."
        step = "" if bracket.step == 1 else f" of {value_words(bracket.step)}"
        rises = bracket.fits_at < bracket.ooms_at
        fits, fails = ("lower value", "upper") if rises else ("value above", "one below")
        return f"Proven: the {fits} fitted {how}, the {fails} failed, one step{step} apart."
    return f"Not proven: {_known(bracket)}."


def _known(bracket: Bracket) -> str:
    """Print what is known of an edge that is not proven."""
    if bracket.fits_at is None and bracket.ooms_at is None:
        return "no trial has told whether it fits"
    if bracket.ooms_at is None:
        return "no trial has shown where memory runs out"
    if bracket.fits_at is None:
        return "no trial has shown what fits"
    return "the edge lies between the two"


def _subject(made: Bisected) -> str:
    if made.command is not None:
        return f"The command `{' '.join(made.command.arguments)}`"
    if made.job is not None:
        return f"{made.job.model.name}: {job_words(made.job)}"
    return "Trials"


def _figures(made: Bisected) -> tuple[Figure, ...]:
    found = []
    answer = made.answer
    if answer is not None:
        if answer.safe_value is not None:
            room = f"with {percent(answer.headroom)} of the memory left free"
            safe = f"{answer.bracket.axis} {value_words(answer.safe_value)}"
            found.append(Figure("safe value", safe, room))
        if answer.curve is not None:
            found.append(_growth(answer.curve, answer))
    if made.limit_bytes is not None:
        cap = made.cap_bytes is not None
        what = "the cap of every trial" if cap else "what the allocator can have of the card"
        if on_host(made):
            what = "what the processes of a trial may hold on the host"
        found.append(Figure("limit", format_size(made.limit_bytes), what))
    if made.card:
        found.append(Figure("card", made.card))
    ooms = sum(one.outcome in (OOM, HOST_OOM) for one in made.trials)
    ran = f"{format_count(ooms)} out of memory, {made.seconds:.1f} s in all"
    if made.replayed:
        ran += f", {format_count(made.replayed)} from the journal"
    found.append(Figure("trials", format_count(len(made.trials)), ran))
    return tuple(found)


def _growth(curve: Curve, answer: SearchAnswer) -> Figure:
    """Return what one more of the axis takes, at the edge."""
    at = answer.bracket.fits_at or (curve.points[-1][0] if curve.points else 1.0)
    step = answer.bracket.step
    more = curve.at(at + step) - curve.at(at)
    step_words = "one" if step == 1 else value_words(step)
    name = "sample" if curve.axis == "batch" and step == 1 else curve.axis
    off = f"+-{format_size(curve.residual_bytes)}, " if curve.residual_bytes else ""
    count = len(curve.points)
    points = f"{off}{count} point{'s' * (count != 1)}, {curve.quantity} bytes"
    if curve.estimated:
        points = f"estimated, {curve.quantity} bytes"
    where = f"at {value_words(at)}, " if curve.quadratic or curve.inverse else ""
    sign = "+" if more >= 0 else "-"
    return Figure(
        f"{step_words} {name} more", f"{sign}{format_size(abs(more))}", f"{where}{points}"
    )


def _curve(made: Bisected) -> Section | None:
    if made.answer is None or made.answer.curve is None:
        return None
    curve = made.answer.curve
    return Section(
        title="The peak along the axis",
        sentences=(formula_words(curve),),
        plot=threshold_plot(made),
    )


def formula_words(curve: Curve) -> str:
    """Print a curve: `reserved = 2.00 GiB + 0.50 GiB x batch`."""
    words = [format_size(curve.constant)]
    for factor, power in (
        (curve.linear, f"x {curve.axis}"),
        (curve.quadratic, f"x {curve.axis}^2"),
        (curve.inverse, f"/ {curve.axis}"),
    ):
        if factor:
            words.append(f"{format_size(factor)} {power}")
    how = "Estimated, moved through what was measured" if curve.estimated else "Fitted"
    least = f", and at least {format_size(curve.floor)}" if curve.floor else ""
    return f"{how}: {curve.quantity} = {' + '.join(words)}{least}."


def _frontier(made: Bisected) -> Section | None:
    frontier = made.frontier
    if frontier is None or not frontier.rows:
        return None
    rows = tuple(_frontier_row(value, answer) for value, answer in frontier.rows)
    return Section(
        title=f"{frontier.inner} by {frontier.outer}",
        heat=frontier_heat(made),
        plot=frontier_plot(made),
        table=Table(
            caption=f"For each {frontier.outer} the largest {frontier.inner} that fits",
            headers=(frontier.outer, "fits", "fails", "safe", "proven", "trials"),
            rows=rows,
            numeric=frozenset({0, 1, 2, 3, 5}),
        ),
    )


def _frontier_row(value: float, answer: SearchAnswer) -> tuple[str, ...]:
    bracket = answer.bracket
    fits, ooms = bracket.fits_at, bracket.ooms_at
    inferred = "by the rows beside it" if bracket.inferred else ""
    proven = "yes" if bracket.proven else inferred or "no"
    return (
        value_words(value),
        "none" if fits is None else value_words(fits),
        "none" if ooms is None else value_words(ooms),
        "" if answer.safe_value is None else value_words(answer.safe_value),
        proven,
        format_count(len(answer.trials)),
    )


def _best(made: Bisected) -> Section | None:
    best = made.best
    if best is None or best.tokens_per_second is None:
        return None
    speed = format_count(round(best.tokens_per_second))
    return Section(
        title="The fastest that fits",
        sentences=(f"{values_words(best.values)}: {speed} tokens per second.",),
    )


def _trials(made: Bisected) -> Section | None:
    if not made.trials:
        return None
    rows = tuple(_trial_row(number, one) for number, one in enumerate(made.trials, 1))
    marked = frozenset(at for at, one in enumerate(made.trials) if one.outcome != FIT)
    return Section(
        title="Trials",
        table=Table(
            caption="Every trial, in the order of the search",
            headers=("", "values", "outcome", "peak", "time"),
            rows=rows,
            numeric=frozenset({0, 4}),
            marked=marked,
        ),
    )


def _trial_row(number: int, one: TrialResult) -> tuple[str, ...]:
    return (
        str(number),
        values_words(one.values),
        outcome_words(one),
        ", ".join(figures_words(one)),
        f"{one.seconds:.1f} s",
    )


def _slipped(made: Bisected) -> Section | None:
    if made.answer is None or not made.answer.slipped:
        return None
    lines = tuple(
        f"{values_words(one.values)}: {identity_words(one.identity) or outcome_words(one)}."
        for one in made.answer.slipped
    )
    first = identity_words(made.answer.bracket.identity)
    sentence = f"The edge is that of {first}; these trials failed otherwise."
    return Section(title="Other failures", sentences=(sentence, *lines))
