"""Put the parts of an answer together: ranking, ledger, fixes, next measurements, words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.fingerprint import fingerprint
from oomdoctor.model.plan import Diagnosis
from oomdoctor.reason import beside, ledger, narrate, prescribe, resource, timeline
from oomdoctor.reason.next_step import measurements
from oomdoctor.reason.rank import Ranking, rank
from oomdoctor.reason.roll_call import fold_ranks
from oomdoctor.record import NamedTuple, replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.configs.dialect import ConfigReading
    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Artifact, Failure, Finding, Quote
    from oomdoctor.model.plan import Fingerprint
    from oomdoctor.reason.roll_call import RankLog
    from oomdoctor.rules.shape import Rule, RuleSet

# Below this, no cause with a true gate speaks for a failure that no reader knows as memory.
_SPEAKS = 0.30
# Libraries that fail to start or to choose, because the card is full or for reasons of their own.
_HIDING = ("cublas-handle", "cudnn-handle")


def conclude(
    book: FactBook,
    *,
    ruleset: RuleSet,
    failures: Sequence[Failure] = (),
    readings: Sequence[ConfigReading] = (),
    artifacts: Sequence[Artifact] = (),
    notes: Sequence[str] = (),
    sources: Mapping[str, Sequence[str]] | None = None,
    logs: Sequence[RankLog] = (),
) -> Diagnosis:
    """Return the whole diagnosis of a complete book of facts.

    `failures` are all failures in input order, `sources` names for derived facts what they are
    derived from, `logs` says which rank each log belongs to.
    """
    event = timeline.first_failure(failures)
    judged = _judge(book, ruleset, event)
    ranking, answer = judged.ranking, judged.answer
    rules = {rule.code: rule for rule in ruleset.rules}
    causes = _worded(ranking.findings, rules, book, event)
    if event is not None:
        causes = _with_echoes(causes, timeline.echoes(failures, event), event)
    plan = prescribe.prescribe(ranking, ruleset, book, readings)
    asked = answer in ("need_evidence", "nothing_found")
    return Diagnosis(
        answer=answer,
        resource=judged.resource,
        conclusive=ranking.conclusive,
        headline=_headline(judged, causes, event),
        event=event,
        facts=dict(sorted(book.facts.items())),
        ledger=ledger.draw_up(book),
        fingerprint=_fingerprint(book),
        causes=causes,
        other_probability=ranking.other_probability,
        side_findings=_worded(ranking.side_findings, rules, book, None),
        prescriptions=plan.prescriptions,
        suppressed=plan.suppressed,
        next_measurements=measurements(ranking, book, sources=sources, needed=asked),
        not_evaluated=ranking.not_evaluated,
        conflicts=book.conflicts,
        faults=ranking.faults,
        ranks=fold_ranks(failures, logs, event),
        artifacts=tuple(artifacts),
        notes=tuple(dict.fromkeys((*notes, *beside.notes(book, failures, event)))),
        signs=judged.signs,
    )


def _headline(judged: _Judged, causes: Sequence[Finding], event: Failure | None) -> str:
    sentence = (causes[0].says or "") if causes else ""
    return narrate.headline(
        judged.answer, judged.resource, ranking=judged.ranking, sentence=sentence, event=event
    )


class _Judged(NamedTuple):
    """What the rules and the certain facts come to."""

    ranking: Ranking
    resource: str
    answer: str
    signs: tuple[Quote, ...]


def _judge(book: FactBook, ruleset: RuleSet, event: Failure | None) -> _Judged:
    """Rank the causes, and say what ran out and which answer follows."""
    certain = resource.certain_resource(book, event)
    ranking = rank(ruleset, book, certain=resource.leaning_of(certain, book, event))
    signs = resource.signs_of(book, ranking)
    recognised = event is not None or signs is not None
    what = resource.combined_resource(certain, ranking) if recognised else "unknown"
    unrelated = event is not None and event.kind == "other" and not _speaks(ranking, what)
    hides = book.value("oom.form") in _HIDING or book.value("fault.library_call") is True
    unrelated = unrelated and not hides
    if unrelated:
        what = "not_memory"
    if unrelated or not recognised:
        ranking = _silenced(ranking)
    answer = resource.answer_of(what, conclusive=ranking.conclusive, recognised=recognised)
    return _Judged(ranking=ranking, resource=what, answer=answer, signs=signs or ())


def _speaks(ranking: Ranking, what: str) -> bool:
    """Say whether a rule with a true gate explains a failure that no reader knows as memory."""
    top = ranking.top
    if what != "unknown":
        return True
    return top is not None and not top.is_open and ranking.masses[0] >= _SPEAKS


def _silenced(ranking: Ranking) -> Ranking:
    """Drop the causes where there is nothing that they could be the cause of."""
    return Ranking(
        side_findings=ranking.side_findings,
        not_evaluated=ranking.not_evaluated,
        faults=ranking.faults,
    )


def _worded(
    findings: Sequence[Finding],
    rules: Mapping[str, Rule],
    book: FactBook,
    event: Failure | None,
) -> tuple[Finding, ...]:
    """Give each finding its verdict sentence, and the failure's own line if it quotes nothing."""
    worded = []
    for finding in findings:
        quotes = finding.quotes
        if not quotes and event is not None:
            quotes = (event.line_quote,)
        sentence = narrate.says(rules[finding.code], book.facts)
        worded.append(replace(finding, says=sentence, quotes=quotes))
    return tuple(worded)


def _with_echoes(
    causes: tuple[Finding, ...], echoes: tuple[Quote, ...], event: Failure
) -> tuple[Finding, ...]:
    """Let the leading cause also quote the lines that repeat the failure it rests on.

    Whoever takes the quoted lines away takes the evidence away, not one of its copies.
    """
    if not causes or not echoes:
        return causes
    first, *others = causes
    place = (event.line_quote.artifact, event.line_quote.line)
    if place not in {(quote.artifact, quote.line) for quote in first.quotes}:
        return causes
    quotes = tuple(dict.fromkeys([*first.quotes, *echoes]))
    return (replace(first, quotes=quotes), *others)


def _fingerprint(book: FactBook) -> Fingerprint | None:
    if book.value("oom.requested") is None:
        return None
    try:
        found = fingerprint(book)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return found if found.matches or found.tried else None
