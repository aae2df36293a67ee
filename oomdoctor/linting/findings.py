"""From rules and a book of facts to findings: which hold, where they stand, what cures them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from oomdoctor.model.core import RuleFault
from oomdoctor.model.enums import Truth
from oomdoctor.model.lint import LintFinding
from oomdoctor.model.plan import NotEvaluated
from oomdoctor.reason import narrate
from oomdoctor.reason.prescribe import prescriptions_of
from oomdoctor.reason.standing import standing_of
from oomdoctor.record import NamedTuple, replace
from oomdoctor.rules.evaluate import condition_verdict, guarded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.facts.book import FactBook
    from oomdoctor.linting.jobs import Job
    from oomdoctor.model.core import Quote, Verdict
    from oomdoctor.reason.standing import Standing
    from oomdoctor.rules.shape import Rule, RuleSet

# Facts that say what kind of job it is; a finding is about something else that it read.
_CONTEXT = ("job.", "env.", "model.", "gpu.", "host.")
_LISTED = ("job.settings", "job.arguments", "job.calls", "job.text")


class Judged(NamedTuple):
    """The findings of a job, the rules that lacked facts, the rules that failed."""

    findings: tuple[LintFinding, ...]
    not_evaluated: tuple[NotEvaluated, ...]
    faults: tuple[RuleFault, ...]


def judge(ruleset: RuleSet, book: FactBook, job: Job) -> Judged:
    """Judge all rules on a job; a bug in one never hides the others."""
    findings: list[LintFinding] = []
    silent: list[NotEvaluated] = []
    faults = [RuleFault(code=code, message=message) for code, message in ruleset.faults]
    known: dict[int, Verdict] = {}
    for rule in ruleset.rules:
        said = guarded(rule, partial(_said, rule, book, job, known))
        if isinstance(said, LintFinding):
            findings.append(said)
        elif isinstance(said, NotEvaluated):
            silent.append(said)
        elif said is not None:
            faults.append(said)
    return Judged(tuple(findings), tuple(silent), tuple(faults))


def _said(
    rule: Rule, book: FactBook, job: Job, known: dict[int, Verdict]
) -> LintFinding | NotEvaluated | None:
    """Return what one rule has to say: a finding, what it lacks, or nothing."""
    gate = condition_verdict(rule.when, book, known)
    if gate.truth is Truth.UNKNOWN:
        return NotEvaluated(code=rule.code, needs=tuple(sorted(gate.missing)))
    standing = standing_of(rule, gate, book)
    return None if standing is None else _finding(rule, gate, standing, book, job)


def _finding(
    rule: Rule, gate: Verdict, standing: Standing, book: FactBook, job: Job
) -> LintFinding:
    rows = {file.path: file.rows for file in job.files}
    place = place_of(rule, gate, book, rows)
    readings = [reading for file in job.files for reading in file.readings]
    return LintFinding(
        code=rule.code,
        rule=rule.name,
        severity=standing.severity,
        title=rule.title,
        message=narrate.says(rule, book.facts),
        category=rule.category or "config",
        maturity=rule.maturity,
        path=place.artifact if place else None,
        line=place.line if place else None,
        column=place.column if place else None,
        end_column=place.end_column if place else None,
        key=_key_at(place, book) if place else None,
        quotes=tuple(_whole(rows, quote) for quote in quotes_about(gate, book)),
        fixes=prescriptions_of(rule, book, readings),
        assumed=standing.assumed,
        breaks=standing.breaks,
        basis=rule.basis,
        url=rule.references[0] if rule.references else None,
        source_line=_line(rows, place),
    )


def place_of(
    rule: Rule, gate: Verdict, book: FactBook, rows: Mapping[str, Sequence[str]]
) -> Quote | None:
    """Return the place in a file that a finding is about, None where no file says it.

    First the facts that the rule names, then the last of what its gate read: of two settings that
    contradict each other the later one is the news.
    """
    for key in rule.at:
        fact = book.get(key)
        inside = [quote for quote in fact.quotes if quote.artifact in rows] if fact else []
        if key in _LISTED:
            inside = [quote for quote in inside if quote in gate.quotes]
        if inside:
            return inside[-1]
    told = [quote for quote in quotes_about(gate, book) if quote.artifact in rows]
    return max(told, key=lambda quote: (quote.line, quote.column or 0), default=None)


def quotes_about(gate: Verdict, book: FactBook) -> tuple[Quote, ...]:
    """Return the places that a gate read, without those that only say what kind of job it is.

    Where it read nothing else, these are what there is.
    """
    facts = [fact for fact in map(book.get, sorted(gate.read)) if fact is not None]
    context = {
        quote
        for fact in facts
        if fact.key.startswith(_CONTEXT) and fact.key not in _LISTED
        for quote in fact.quotes
    }
    return tuple(quote for quote in gate.quotes if quote not in context) or gate.quotes


def _key_at(place: Quote, book: FactBook) -> str | None:
    """Return the dotted setting that stands at a place."""
    listing = book.get("job.settings")
    if listing is None:
        return None
    lines = str(listing.value).split("\n")
    for line, quote in zip(lines, listing.quotes, strict=False):
        if (quote.artifact, quote.line, quote.column) == (
            place.artifact,
            place.line,
            place.column,
        ):
            return line.partition(" = ")[0]
    return None


def _whole(rows: Mapping[str, Sequence[str]], quote: Quote) -> Quote:
    """Return a place with the text of its whole line: a value alone says little."""
    text = _line(rows, quote)
    return replace(quote, text=text.strip()) if text and text.strip() else quote


def _line(rows: Mapping[str, Sequence[str]], place: Quote | None) -> str | None:
    lines = rows.get(place.artifact, ()) if place else ()
    return lines[place.line - 1].rstrip("\r") if place and place.line <= len(lines) else None
