"""Judge every rule on a book: which causes stay possible, how strongly, which rules broke."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oomdoctor.model.core import RuleFault
from oomdoctor.model.enums import Truth
from oomdoctor.record import dataclass, replace
from oomdoctor.rules.evaluate import condition_verdict, leaves_of, weigh
from oomdoctor.rules.leaves import timed_out_patterns
from oomdoctor.rules.patterns import was_any_stopped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Verdict, Weight
    from oomdoctor.rules.shape import Cause, Rule, RuleSet

OPEN_GATE_FACTOR = 0.5
"""A rule whose gate could still turn out false counts half."""

_FALLBACK_PRIOR = 0.001
# A cause of another resource than the one that certainly ran out needs a sign of its own.
_FOREIGN_OPEN = 0.05
_FOREIGN_CERTAIN = 0.1
_DEVICE_AFTER_KILL = 0.02
# A cause of training alone, in a job that trains nothing as far as its log tells.
_TRAINS_NOTHING = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A rule that was not ruled out: gate, evidence lines, and its unnormalised log score."""

    rule: Rule
    cause: Cause
    gate: Verdict
    weights: tuple[Weight, ...]
    score: float
    other_codes: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Say whether the gate could still turn out false."""
        return self.gate.truth is Truth.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """All rules judged: one candidate per cause, side findings, open rules and faults."""

    candidates: tuple[Candidate, ...] = ()
    side: tuple[tuple[Rule, Verdict], ...] = ()
    open_rules: tuple[tuple[str, tuple[str, ...]], ...] = ()
    faults: tuple[RuleFault, ...] = ()


def resource_of(cause: Cause) -> str:
    """Return the resource of a cause in the words of the answer (`not_memory`)."""
    return cause.resource.replace("-", "_")


def judge(ruleset: RuleSet, book: FactBook, *, certain: str = "unknown") -> Judged:
    """Judge all rules on `book`; `certain` is the resource that certainly ran out."""
    candidates: list[Candidate] = []
    side: list[tuple[Rule, Verdict]] = []
    open_rules: list[tuple[str, tuple[str, ...]]] = []
    faults = [RuleFault(code=code, message=message) for code, message in ruleset.faults]
    known: dict[int, Verdict] = {}
    idle = trains_nothing(book)
    for rule in sorted(ruleset.rules, key=lambda rule: rule.code):
        try:
            gate = condition_verdict(rule.when, book, known)
            if gate.truth is Truth.FALSE:
                continue
            if rule.cause is None:
                if gate.truth is Truth.TRUE:
                    side.append((rule, gate))
                continue
            if gate.truth is Truth.UNKNOWN:
                open_rules.append((rule.code, tuple(sorted(gate.missing))))
            cause = ruleset.causes[rule.cause]
            weights = weigh(rule, book, known)
            candidates.append(_candidate(rule, cause, gate, weights, certain, idle=idle))
            faults += _stopped_patterns(rule, gate, weights, book)
        except Exception as fault:  # noqa: BLE001 - a bug in one rule never hides the others
            faults.append(RuleFault(code=rule.code, message=f"{type(fault).__name__}: {fault}"))
    return Judged(
        candidates=strongest_per_cause(candidates),
        side=tuple(side),
        open_rules=tuple(open_rules),
        faults=tuple(faults),
    )


def _stopped_patterns(
    rule: Rule, gate: Verdict, weights: tuple[Weight, ...], book: FactBook
) -> list[RuleFault]:
    """Tell of patterns whose search ran out of time: their conditions stayed unknown."""
    if not was_any_stopped():
        return []
    open_parts = [rule.when] if gate.truth is Truth.UNKNOWN else []
    for line, weight in zip(rule.evidence, weights, strict=True):
        if weight.verdict.truth is Truth.UNKNOWN:
            open_parts.append(line.condition)
    stopped = {
        (key, pattern)
        for part in open_parts
        for leaf in leaves_of(part)
        for key, pattern in timed_out_patterns(leaf.tree, book)
    }
    return [
        RuleFault(code=rule.code, message=f"the pattern {pattern!r} took too long on {key}")
        for key, pattern in sorted(stopped)
    ]


def trains_nothing(book: FactBook) -> bool:
    """Say whether nothing is trained: the job says so, or its engine cannot train."""
    fact = book.get("run.inference_only")
    return fact is not None and fact.value is True


def _candidate(
    rule: Rule,
    cause: Cause,
    gate: Verdict,
    weights: tuple[Weight, ...],
    certain: str,
    *,
    idle: bool,
) -> Candidate:
    nats = sum(weight.nats for weight in weights if weight.counted)
    score = score_of(cause, nats, certain, is_open=gate.truth is Truth.UNKNOWN, idle=idle)
    return Candidate(rule=rule, cause=cause, gate=gate, weights=weights, score=score)


def score_of(
    cause: Cause, nats: float, certain: str, *, is_open: bool, idle: bool = False
) -> float:
    """Return the log score of a cause: its prior, its evidence, and what damps it.

    `idle` says that the job trains nothing.
    """
    score = math.log(cause.prior if cause.prior > 0 else _FALLBACK_PRIOR) + nats
    score += math.log(OPEN_GATE_FACTOR) if is_open else 0.0
    score += math.log(_TRAINS_NOTHING) if idle and cause.training else 0.0
    return score + math.log(_foreign_factor(resource_of(cause), certain, is_open=is_open))


def _foreign_factor(resource: str, certain: str, *, is_open: bool) -> float:
    """Return by how much a cause of another resource than the certain one is damped.

    A message of the GPU allocator leaves room for causes with a true gate (a host limit that is
    printed as a GPU failure); a kernel's kill or an assertion before the message hardly does.
    `killed` is a signal 9 without any word of a device.
    """
    family = {"gpu": ("gpu", "cap"), "cap": ("gpu", "cap")}.get(certain, (certain,))
    if certain == "unknown" or resource in family:
        return 1.0
    if certain == "killed":
        return _DEVICE_AFTER_KILL if is_open and resource in ("gpu", "cap") else 1.0
    if certain in ("gpu", "cap"):
        return _FOREIGN_OPEN if is_open else 1.0
    return _FOREIGN_CERTAIN * (_FOREIGN_OPEN if is_open else 1.0)


def strongest_per_cause(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Keep the strongest rule of each cause; the codes of the others stay with it."""
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(candidate.cause.id, []).append(candidate)
    kept = []
    for group in groups.values():
        best, *rest = sorted(group, key=lambda c: (-c.score, c.is_open, c.rule.code))
        others = tuple(sorted(c.rule.code for c in rest))
        kept.append(replace(best, other_codes=others) if others else best)
    return tuple(sorted(kept, key=lambda c: (-c.score, c.cause.id)))
