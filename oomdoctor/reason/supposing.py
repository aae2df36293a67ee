"""What the ranking would be if some facts were known: only what those facts touch is weighed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.given import parse_given
from oomdoctor.model.enums import Truth
from oomdoctor.reason.candidates import (
    Candidate,
    resource_of,
    score_of,
    strongest_per_cause,
    trains_nothing,
)
from oomdoctor.reason.rank import calibrated, lend_to_broader, posterior
from oomdoctor.reason.resource import certain_resource, leaning_of
from oomdoctor.record import NamedTuple
from oomdoctor.rules.evaluate import condition_verdict, counted_lines, leaves_of, nats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Failure, Verdict
    from oomdoctor.rules.shape import Cause, Condition, Rule, RuleSet

OTHER = "something else"
# What a broad cause counts for while finer ones that would explain it are possible.
_BROAD_COUNTS = 0.1


class Belief:
    """A posterior over causes, with the log scores that it came from.

    `masses` is what the ranking shows. In `asking` nothing is lent to a broader cause, and one
    that finer causes would explain further counts little: it tells what is still worth asking.
    """

    __slots__ = ("_candidates", "asking", "masses", "scores")

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        """Keep the strongest candidate of each cause; the masses are found when asked for."""
        self._candidates = strongest_per_cause(candidates)
        self.scores = {one.cause.id: one.score for one in self._candidates}

    def __getattr__(self, name: str) -> dict[str, float]:
        """Normalise the scores, the first time that somebody looks."""
        if name not in ("asking", "masses"):
            raise AttributeError(name)
        shares, other = posterior(list(self.scores.values()))
        lent = lend_to_broader(self._candidates, shares)
        shown, rest = calibrated(lent, other)
        self.masses = {**dict(zip(self.scores, shown, strict=True)), OTHER: rest}
        broad = _broad(self._candidates)
        damped = [
            share * (_BROAD_COUNTS if cause in broad else 1.0)
            for cause, share in zip(self.scores, shares, strict=True)
        ]
        total = sum(damped) + other
        self.asking = dict(zip(self.scores, (one / total for one in damped), strict=True))
        self.asking[OTHER] = other / total
        return self.masses if name == "masses" else self.asking

    @property
    def leader(self) -> str:
        """Return the most probable cause, or "something else" where there is none."""
        return max(self.scores, key=self.masses.__getitem__) if self.scores else OTHER


class Damping(NamedTuple):
    """What damps whole causes: the resource that certainly ran out, and whether nothing trains."""

    certain: str
    idle: bool


class Weighed:
    """One rule on the book: its gate and the nats of each line, kept to be reused."""

    __slots__ = ("cause", "gate", "lines", "rule")

    def __init__(self, rule: Rule, cause: Cause, book: FactBook, known: dict[int, Verdict]) -> None:
        """Judge the gate and all evidence lines."""
        self.rule, self.cause = rule, cause
        self.gate = condition_verdict(rule.when, book, known)
        self.lines = [
            nats(line, condition_verdict(line.condition, book, known).truth)
            for line in rule.evidence
        ]

    def again(
        self,
        touched: Iterable[int],
        book: FactBook,
        known: dict[int, Verdict],
        damping: Damping,
    ) -> Candidate | None:
        """Judge the parts that were touched (-1 is the gate) on another book; None if out."""
        gate, lines = self.gate, self.lines
        for at in touched:
            if at < 0:
                gate = condition_verdict(self.rule.when, book, known)
            else:
                lines = list(lines) if lines is self.lines else lines
                line = self.rule.evidence[at]
                lines[at] = nats(line, condition_verdict(line.condition, book, known).truth)
        if gate.truth is Truth.FALSE:
            return None
        total = sum(lines[at] for at in counted_lines(self.rule, lines))
        is_open = gate.truth is Truth.UNKNOWN
        certain, idle = damping
        score = score_of(self.cause, total, certain, is_open=is_open, idle=idle)
        return Candidate(rule=self.rule, cause=self.cause, gate=gate, weights=(), score=score)


class Supposing:
    """A judged book that answers what-if questions."""

    def __init__(
        self,
        ruleset: RuleSet,
        book: FactBook,
        *,
        event: Failure | None = None,
        complete: Callable[[FactBook], FactBook] = lambda book: book,
    ) -> None:
        """Judge all rules on `book`; `complete` derives what follows from facts that are added."""
        self._book, self._event, self._complete = book, event, complete
        known: dict[int, Verdict] = {}
        self._rules: list[Weighed] = []
        for rule in ruleset.rules:
            try:
                if rule.cause is not None:
                    self._rules.append(Weighed(rule, ruleset.causes[rule.cause], book, known))
            except Exception:  # noqa: BLE001, PERF203, S112 - one rule's bug never hides the others
                continue
        self._readers = _readers([one.rule for one in self._rules])
        self._damping = self._damping_on(book)
        self._held = [one.again((), book, {}, self._damping) for one in self._rules]
        self.now = _belief(self._held)

    def given(self, items: Iterable[str]) -> Belief:
        """Return the belief that KEY=VALUE statements would lead to."""
        return self.on(self._complete(self._book.add(parse_given(items))))

    def on(self, book: FactBook) -> Belief:
        """Return the belief on another book that differs in a few facts."""
        touched: dict[int, set[int]] = {}
        for key in _changed(self._book.facts, book.facts):
            for rule, part in self._readers.get(key, ()):
                touched.setdefault(rule, set()).add(part)
        damping = self._damping_on(book)
        if damping != self._damping:
            touched = {at: touched.get(at, set()) for at in range(len(self._rules))}
        known: dict[int, Verdict] = {}
        candidates = list(self._held)
        for at, parts in touched.items():
            candidates[at] = self._rules[at].again(parts, book, known, damping)
        return _belief(candidates)

    def _damping_on(self, book: FactBook) -> Damping:
        certain = leaning_of(certain_resource(book, self._event), book, self._event)
        return Damping(certain, trains_nothing(book))


def _broad(candidates: Sequence[Candidate]) -> set[str]:
    """Return the causes of the host that are certain and that others explain further."""
    finer = {
        near for one in candidates if resource_of(one.cause) == "host" for near in one.cause.near
    }
    return {
        one.cause.id
        for one in candidates
        if one.cause.id in finer and not one.is_open and resource_of(one.cause) == "host"
    }


def _belief(candidates: Iterable[Candidate | None]) -> Belief:
    return Belief(one for one in candidates if one is not None)


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    """Return the keys whose fact is another one."""
    return {key for key in after.keys() | before.keys() if before.get(key) is not after.get(key)}


def _readers(rules: Sequence[Rule]) -> dict[str, list[tuple[int, int]]]:
    """Return for each fact the places that read it: (rule, evidence line), -1 for the gate."""
    found: dict[str, list[tuple[int, int]]] = {}
    for at, rule in enumerate(rules):
        parts = [(-1, rule.when), *enumerate(line.condition for line in rule.evidence)]
        for part, condition in parts:
            for key in _reads(condition):
                found.setdefault(key, []).append((at, part))
    return found


def _reads(condition: Condition) -> set[str]:
    return {key for leaf in leaves_of(condition) for key in leaf.reads}
