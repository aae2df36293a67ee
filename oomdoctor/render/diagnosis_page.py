"""A diagnosis laid out as a page: the verdict, the balance sheet, ranked causes, what to change.

All that the text page keeps for --explain is there, folded: a page is opened, not scrolled past.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.diagnosis_answer import (
    cause_section,
    fix_section,
    next_section,
    proof_section,
    quoted,
)
from oomdoctor.render.diagnosis_remarks import remark_sections
from oomdoctor.render.page import Figure, Page, Point, Section, Stack, StackPart
from oomdoctor.render.parts.balance import chance_words, match_words, sum_words, traced_words
from oomdoctor.render.parts.next_steps import NOTHING
from oomdoctor.render.view import View
from oomdoctor.render.words import (
    answer_words,
    entry_source,
    opening_quotes,
    owner_words,
    percent,
    rank_state,
    rank_words,
    sentence,
    shares,
)
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.lint import UnderstoodRow
    from oomdoctor.model.plan import Diagnosis

MATCHES = 3
_REQUESTED, _CAPACITY, _FREE = "oom.requested", "oom.capacity", "oom.free"


def diagnosis_page(
    diagnosis: Diagnosis, view: View | None = None, *, before: Sequence[Section] = ()
) -> Page:
    """Return the page of a diagnosis; sections `before` it tell of the run that it is about."""
    shown = view or View()
    if shown.next_only:
        step = next_section(diagnosis)
        lead = () if step is not None else (NOTHING,)
        return Page(
            title="What to measure next", lead=lead, sections=(step,) if step is not None else ()
        )
    sections = (
        *before,
        _balance(diagnosis),
        _ranks(diagnosis),
        cause_section(diagnosis, shown),
        fix_section(diagnosis, shown),
        next_section(diagnosis),
        proof_section(diagnosis),
        *_job(diagnosis),
        *remark_sections(diagnosis),
    )
    role, badges = _badges(diagnosis)
    return Page(
        title=sentence(diagnosis.headline),
        lead=(),
        figures=_figures(diagnosis),
        sections=tuple(one for one in sections if one is not None),
        notes=diagnosis.notes,
        role=role,
        badges=badges,
        quotes=quoted(opening_quotes(diagnosis)),
    )


def _badges(diagnosis: Diagnosis) -> tuple[str, tuple[str, ...]]:
    """Return the sign of the answer, and what it is in a few words."""
    role, words = answer_words(diagnosis)
    if diagnosis.causes:
        words.append("conclusive" if diagnosis.conclusive else "not conclusive")
    return role, tuple(words)


def _figures(diagnosis: Diagnosis) -> tuple[Figure, ...]:
    found = []
    if diagnosis.causes:
        first = diagnosis.causes[0]
        probability = percent(shares(diagnosis.causes)[0][0])
        found.append(Figure("leading cause", probability, f"{first.cause} ({first.code})"))
    for key, name in (
        (_REQUESTED, "the request that failed"),
        (_CAPACITY, "the card has"),
        (_FREE, "free on the card"),
    ):
        fact = diagnosis.facts.get(key)
        if fact is not None and isinstance(fact.value, (int, float)):
            found.append(Figure(name, format_size(fact.value), fact.origin.value))
    ledger = diagnosis.ledger
    if ledger is not None and ledger.overshoot_bytes is not None and ledger.overshoot_bytes > 0:
        size = format_size(ledger.overshoot_bytes)
        found.append(Figure("missing at least", size, "the request less what was left"))
    return tuple(found)


def _balance(diagnosis: Diagnosis) -> Section | None:
    ledger = diagnosis.ledger
    points = [Point("•", traced_words(owner)) for owner in diagnosis.traced]
    found = diagnosis.fingerprint
    if found is not None and found.matches:
        points += [Point("•", match_words(one)) for one in found.matches[:MATCHES]]
        points.append(Point("•", chance_words(found, MATCHES)))
    stack = None
    sentences: tuple[str, ...] = ()
    title = "The failed request"
    if ledger is not None and ledger.entries:
        whole = ledger.capacity_bytes
        title = "Balance sheet" + (f" of {format_size(whole)}" if whole is not None else "")
        sentences = tuple(sum_words(ledger))
        stack = Stack(
            caption="Who holds the memory of the card",
            parts=tuple(
                StackPart(
                    owner_words(one.owner),
                    one.bytes,
                    format_size(one.bytes),
                    entry_source(one),
                    one.owner,
                )
                for one in ledger.entries
            ),
            whole=whole or 0,
        )
    if stack is None and not points:
        return None
    return Section(title=title, sentences=sentences, stack=stack, points=tuple(points))


def _ranks(diagnosis: Diagnosis) -> Section | None:
    if len(diagnosis.ranks) < 2:
        return None
    points = (
        Point("•", f"{rank_words(one)}: {rank_state(one)}: {one.headline}")
        for one in diagnosis.ranks
    )
    return Section(title="Ranks, first failure first", points=tuple(points))


def _job(diagnosis: Diagnosis) -> tuple[Section, ...]:
    from oomdoctor.render.understood_page import understood_sections

    rows: Sequence[UnderstoodRow] = diagnosis.understood
    return understood_sections(rows, diagnosis.job_files)
