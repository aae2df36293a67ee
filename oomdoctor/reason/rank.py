"""Rank the causes that stay possible: a posterior with "something else", conclusive or not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oomdoctor.errors import RuleError
from oomdoctor.model.core import Finding
from oomdoctor.model.enums import Origin, Truth
from oomdoctor.model.plan import NotEvaluated
from oomdoctor.reason.candidates import judge, resource_of
from oomdoctor.reason.fallbacks import is_moot
from oomdoctor.record import dataclass
from oomdoctor.rules.evaluate import expression_value, nats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Quote, RuleFault, Verdict
    from oomdoctor.reason.candidates import Candidate
    from oomdoctor.rules.shape import Cause, Evidence, Rule, RuleSet

OTHER_PRIOR = 0.10
"""Prior of "something else": a cause that no rule knows."""

SHARPNESS = 1.7
"""What the odds of the posterior are raised to (docs/decisions/0004-calibration.md): the weights
are judged one by one, each on the safe side, and together they come out too timid."""

SHOWN = 8
_LEADS = 0.60
_LEADS_ITSELF = 0.45
_CLEARLY = 3.0
# Odds times ten: "strong" on Jeffreys' scale.
_STRONG_NATS = math.log(10)
_NEGLIGIBLE = 0.004
_NEGLIGIBLE_FOREIGN = 0.05
# What an unsupported finer reason keeps of its mass beside a certain broader one.
_FINER_KEEPS = 0.25
# What a fact has to move a probability by, true or false, for it to be worth asking for.
_MATTERS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Findings best first with what is left for other causes, and the candidates behind them.

    `masses` is the posterior as the rules judge it, by which is decided what is established;
    `probabilities` are the calibrated ones that are shown.
    """

    findings: tuple[Finding, ...] = ()
    other_probability: float = 1.0
    conclusive: bool = False
    candidates: tuple[Candidate, ...] = ()
    masses: tuple[float, ...] = ()
    probabilities: tuple[float, ...] = ()
    side_findings: tuple[Finding, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    faults: tuple[RuleFault, ...] = ()

    @property
    def top(self) -> Candidate | None:
        """Return the leading candidate, or None where every rule was ruled out."""
        return self.candidates[0] if self.candidates else None


def rank(ruleset: RuleSet, book: FactBook, *, certain: str = "unknown") -> Ranking:
    """Rank all causes on `book`; `certain` is the resource that certainly ran out, if any."""
    judged = judge(ruleset, book, certain=certain)
    masses, other = posterior([candidate.score for candidate in judged.candidates])
    masses = lend_to_broader(judged.candidates, masses)
    order = sorted(
        zip(judged.candidates, masses, strict=True), key=lambda pair: (-pair[1], pair[0].cause.id)
    )
    candidates = tuple(candidate for candidate, _ in order)
    ordered = tuple(mass for _, mass in order)
    probabilities, _ = calibrated(ordered, other)
    pairs = list(zip(candidates, probabilities, strict=True))[:SHOWN]
    shown = [pair for pair in pairs if pair[1] >= _least(pair[0], certain)]
    findings = tuple(_finding(candidate, share, book) for candidate, share in shown)
    return Ranking(
        findings=findings,
        other_probability=max(0.0, 1.0 - sum(finding.probability for finding in findings)),
        conclusive=is_conclusive(candidates, ordered, other),
        candidates=candidates,
        masses=ordered,
        probabilities=probabilities,
        side_findings=tuple(_side_finding(rule, gate, book) for rule, gate in judged.side),
        not_evaluated=tuple(NotEvaluated(code=code, needs=n) for code, n in judged.open_rules),
        faults=judged.faults,
    )


def _least(candidate: Candidate, certain: str) -> float:
    """Return from which probability on a cause is worth a line."""
    foreign = certain in ("host", "not_memory") and resource_of(candidate.cause) != certain
    return _NEGLIGIBLE_FOREIGN if foreign else _NEGLIGIBLE


def posterior(scores: Sequence[float], *, other: float = OTHER_PRIOR) -> tuple[list[float], float]:
    """Turn log scores into probabilities that add up to one with "something else"."""
    rest = math.log(other)
    peak = max([rest, *scores])
    shares = [math.exp(score - peak) for score in scores]
    rest_share = math.exp(rest - peak)
    total = math.fsum(shares) + rest_share
    return [share / total for share in shares], rest_share / total


def calibrated(masses: Sequence[float], other: float) -> tuple[tuple[float, ...], float]:
    """Return the shares and "something else" as they are shown: as often right as they say."""
    raised = [mass**SHARPNESS for mass in masses]
    rest = other**SHARPNESS
    total = math.fsum(raised) + rest
    return tuple([mass / total for mass in raised]), rest / total


def lend_to_broader(candidates: Sequence[Candidate], masses: Sequence[float]) -> list[float]:
    """Let finer host reasons without a sign of their own count for the certain broader cause.

    A kernel's oom-kill line is host memory for sure while the deeper reason stays open: then the
    broad cause leads and the finer ones follow.
    """
    broad = {
        candidate.cause.id: index
        for index, candidate in enumerate(candidates)
        if not candidate.is_open and resource_of(candidate.cause) == "host"
    }
    moved = list(masses)
    for index, candidate in enumerate(candidates):
        if not candidate.is_open or resource_of(candidate.cause) != "host":
            continue
        target = next((broad[near] for near in candidate.cause.near if near in broad), None)
        if target is not None:
            moved[target] += masses[index] * (1 - _FINER_KEEPS)
            moved[index] -= masses[index] * (1 - _FINER_KEEPS)
    return moved


def family_of(cause: Cause, causes: Mapping[str, Cause]) -> frozenset[str]:
    """Return the cause with all that the vocabulary calls near to it, in either direction."""
    back = {other.id for other in causes.values() if cause.id in other.near}
    return frozenset({cause.id, *cause.near} | back)


def is_conclusive(
    candidates: Sequence[Candidate], probabilities: Sequence[float], other: float
) -> bool:
    """Say whether the leading cause is established (docs/decisions/0001-conclusive.md).

    The leading cause and its near ones are one family: its mass is at least 0.60 and three times
    both the strongest outsider and "something else", of which the leading cause itself has 0.45;
    its gate is settled, and its evidence is strong by itself, whatever its prior.
    """
    if not candidates or candidates[0].is_open or support(candidates[0]) < _STRONG_NATS:
        return False
    if probabilities[0] < _LEADS_ITSELF:
        return False
    causes = {candidate.cause.id: candidate.cause for candidate in candidates}
    family = family_of(candidates[0].cause, causes)
    pairs = list(zip(candidates, probabilities, strict=True))
    inside = math.fsum(mass for candidate, mass in pairs if candidate.cause.id in family)
    rival = max((mass for candidate, mass in pairs if candidate.cause.id not in family), default=0)
    return inside >= _LEADS and rival * _CLEARLY <= inside and other * _CLEARLY <= inside


def support(candidate: Candidate) -> float:
    """Return the nats by which the evidence of a candidate, without its prior, speaks for it."""
    return math.fsum(weight.nats for weight in candidate.weights if weight.counted)


def _finding(candidate: Candidate, probability: float, book: FactBook) -> Finding:
    read = _reads(candidate)
    counted = [weight for weight in candidate.weights if weight.counted]
    supporting = [weight.verdict for weight in counted if weight.nats > 0]
    opposing = [weight.verdict for weight in counted if weight.nats < 0]
    rule = candidate.rule
    return Finding(
        code=rule.code,
        cause=candidate.cause.id,
        title=rule.title,
        severity=rule.severity,
        maturity=rule.maturity,
        probability=probability,
        gate=candidate.gate,
        weights=candidate.weights,
        explains_bytes=explained_bytes(rule, book),
        quotes=_quotes_of([candidate.gate, *supporting]),
        against=_quotes_of(opposing),
        missing=_missing(candidate, probability, book),
        assumed=_assumed(read, book),
        other_codes=candidate.other_codes,
    )


def _missing(candidate: Candidate, probability: float, book: FactBook) -> tuple[str, ...]:
    """Return what is not known and could still move the probability."""
    missing = set(candidate.gate.missing)
    for line, weight in zip(candidate.rule.evidence, candidate.weights, strict=False):
        if weight.verdict.truth is Truth.UNKNOWN and _matters(line, probability):
            missing |= weight.verdict.missing
    return tuple(sorted(key for key in missing if not is_moot(book, key)))


def _matters(line: Evidence, probability: float) -> bool:
    """Say whether a line, if it were known to be true or false, would move a probability."""
    rest = 1 - probability
    for truth in (Truth.TRUE, Truth.FALSE):
        odds = math.exp(SHARPNESS * nats(line, truth))
        moved = probability * odds / (probability * odds + rest)
        if abs(moved - probability) >= _MATTERS:
            return True
    return False


def _side_finding(rule: Rule, gate: Verdict, book: FactBook) -> Finding:
    return Finding(
        code=rule.code,
        cause=rule.cause or "",
        title=rule.title,
        severity=rule.severity,
        maturity=rule.maturity,
        probability=1.0,
        gate=gate,
        quotes=gate.quotes,
        assumed=_assumed(gate.read, book),
    )


def explained_bytes(rule: Rule, book: FactBook) -> int | None:
    """Return the bytes of the overshoot that the rule accounts for, None where facts lack."""
    if rule.explains is None:
        return None
    try:
        value, _ = expression_value(rule.explains, book)
    except (RuleError, ArithmeticError):
        return None
    return int(value) if isinstance(value, (int, float)) and value >= 0 else None


def _reads(candidate: Candidate) -> frozenset[str]:
    return candidate.gate.read.union(*(weight.verdict.read for weight in candidate.weights))


def _assumed(keys: frozenset[str], book: FactBook) -> tuple[str, ...]:
    facts = (book.get(key) for key in sorted(keys))
    return tuple(fact.key for fact in facts if fact is not None and fact.origin is Origin.ASSUMED)


def _quotes_of(verdicts: Sequence[Verdict]) -> tuple[Quote, ...]:
    return tuple(dict.fromkeys(quote for verdict in verdicts for quote in verdict.quotes))
