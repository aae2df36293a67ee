"""Choose what to measure next: information gained about the cause per second of effort."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oomdoctor.model.enums import Truth
from oomdoctor.model.plan import Measurement
from oomdoctor.reason.backends import spelled
from oomdoctor.reason.fallbacks import (
    OF_DEVICE,
    OF_MESSAGE,
    fallbacks,
    is_known,
    is_moot,
    is_of_another_writer,
)
from oomdoctor.reason.rank import OTHER_PRIOR, SHARPNESS
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from oomdoctor.facts.book import FactBook
    from oomdoctor.reason.rank import Ranking

SHOWN = 5
_CONSIDERED = 20
_LEAST_BITS = 0.005
# How often an open gate turns out true when its cause holds, and when another one does.
_GATE_SEEN = (0.98, 0.30)
_SPOKEN_FOR = 3
_OF_PYTORCH = ("oom.largest_process", "oom.listed_processes", "torch.reserved_unallocated")
# Smaller changes of a probability are no news.
_NEWS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A line whose outcome is open: which cause it is about and how often it is seen."""

    cause: int
    label: str
    seen: tuple[float, float]
    missing: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answerable:
    """A question that one command answers, with what either answer does to the posterior."""

    question: _Question
    fact: str
    gain: float
    if_true: tuple[float, ...]
    if_false: tuple[float, ...]
    flips: bool


def measurements(
    ranking: Ranking,
    book: FactBook,
    *,
    sources: Mapping[str, Sequence[str]] | None = None,
    needed: bool = False,
) -> tuple[Measurement, ...]:
    """Return the next measurements, best first.

    `sources` names for derived facts those they are derived from; `needed` asks for at least one
    measurement with a command even where no rule could gain from any.
    """
    names, belief = _belief(ranking)
    known = _entropy(belief)
    by_command: dict[str, list[_Answerable]] = {}
    costs: dict[str, float] = {}
    for question in _questions(ranking):
        askable = _askable(question.missing, book, sources or {})
        outcome = _outcome(question, belief, known)
        for command, (fact, cost) in askable.items():
            costs[command] = cost
            answer = replace(outcome, fact=fact, gain=outcome.gain / len(askable))
            by_command.setdefault(command, []).append(answer)
    ranked = [
        _measurement(command, answers, costs[command], names, belief)
        for command, answers in by_command.items()
    ]
    kept = [one for one in ranked if one[0].gain_bits >= _LEAST_BITS]
    kept.sort(
        key=lambda one: (
            -_rounded(one[0].gain_bits / (one[0].seconds + 1)),
            not one[1],
            one[0].seconds,
            one[0].fact,
        )
    )
    chosen = [measurement for measurement, _ in kept[:SHOWN]]
    if needed and len(chosen) < _SPOKEN_FOR:
        chosen += fallbacks(book, chosen, names)[: _SPOKEN_FOR - len(chosen)]
    by_spelling: dict[str, Measurement] = {}
    for one in chosen:
        command = spelled(one.command, book)
        by_spelling.setdefault(command, replace(one, command=command))
    return tuple(by_spelling.values())


def _belief(ranking: Ranking) -> tuple[list[str], list[float]]:
    """Return the leading causes and their masses; the last entry is everything else."""
    names = [candidate.cause.id for candidate in ranking.candidates[:_CONSIDERED]]
    masses = list(ranking.probabilities[:_CONSIDERED])
    rest = max(1.0 - math.fsum(masses), OTHER_PRIOR / 10 if not masses else 0.0)
    return [*names, "something else"], [*masses, rest]


def _questions(ranking: Ranking) -> Iterable[_Question]:
    for index, candidate in enumerate(ranking.candidates[:_CONSIDERED]):
        if candidate.is_open:
            missing = candidate.gate.missing
            yield _Question(
                cause=index,
                label=f"{candidate.rule.code} applies, by {', '.join(sorted(missing)[:2])}",
                seen=_GATE_SEEN,
                missing=missing,
            )
        for line, weight in zip(candidate.rule.evidence, candidate.weights, strict=False):
            if weight.verdict.truth is Truth.UNKNOWN and weight.verdict.missing:
                yield _Question(
                    cause=index,
                    label=weight.label,
                    seen=(line.in_cause, line.otherwise),
                    missing=weight.verdict.missing,
                )


def _askable(
    missing: Iterable[str], book: FactBook, sources: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, float]]:
    """Return command -> (fact, cost) for the missing facts, through their sources if derived."""
    found: dict[str, tuple[str, float]] = {}
    keys = sorted(missing)
    if is_of_another_writer(book) and any(key in _OF_PYTORCH for key in keys):
        return found  # a line about what PyTorch's message says stays open
    for key in keys:
        layer, seen = [key], {key}
        while layer:
            open_ones = [one for one in layer if not (is_known(book, one) or is_moot(book, one))]
            direct = [(one, _obtain(one, book)) for one in open_ones]
            for one, way in direct:
                if way is not None:
                    found.setdefault(way[0], (one, way[1]))
            if any(way is not None for _, way in direct):
                break
            layer = [below for one in layer for below in sources.get(one, ()) if below not in seen]
            seen |= set(layer)
    return found


def _obtain(key: str, book: FactBook) -> tuple[str, float] | None:
    """Return the command and its cost; figures of the failure message come with the message.

    Where an engine or another library wrote the message, the driver tells what a device has.
    """
    from oomdoctor.facts.registry import find

    if key in OF_DEVICE and is_of_another_writer(book):
        key = "gpu.used"
    spec = find(key)
    if spec is not None and spec.obtain is not None:
        return spec.obtain, spec.cost_s
    message = find("oom.requested")
    if message is None or message.obtain is None or not key.startswith(OF_MESSAGE):
        return None
    return message.obtain, message.cost_s


def _outcome(question: _Question, belief: Sequence[float], entropy: float) -> _Answerable:
    """Update the belief by either answer; the gain is the expected drop of its `entropy`."""
    cause, (in_cause, otherwise) = question.cause, question.seen
    p_true = otherwise * (1 - belief[cause]) + in_cause * belief[cause]
    if_true = _updated(belief, cause, in_cause, otherwise)
    if_false = _updated(belief, cause, 1 - in_cause, 1 - otherwise)
    expected = p_true * _entropy(if_true) + (1 - p_true) * _entropy(if_false)
    leader = _leader(belief)
    return _Answerable(
        question=question,
        fact="",
        gain=max(0.0, entropy - expected),
        if_true=if_true,
        if_false=if_false,
        flips=_leader(if_true) != leader or _leader(if_false) != leader,
    )


def _updated(
    belief: Sequence[float], cause: int, in_cause: float, otherwise: float
) -> tuple[float, ...]:
    """Return the belief after a sign of `cause`; shown probabilities move by sharpened odds."""
    masses = [mass * otherwise**SHARPNESS for mass in belief]
    masses[cause] = belief[cause] * in_cause**SHARPNESS
    total = math.fsum(masses)
    return tuple([mass / total for mass in masses]) if total > 0 else tuple(masses)


def _entropy(belief: Sequence[float]) -> float:
    log2 = math.log2
    return -math.fsum([mass * log2(mass) for mass in belief if mass > 0])


def _leader(belief: Sequence[float]) -> int:
    return belief.index(max(belief))


def _rounded(rate: float) -> float:
    """Round to two digits, so that measurements of about equal worth count as tied."""
    return float(f"{rate:.1e}")


def _measurement(
    command: str,
    answers: Sequence[_Answerable],
    cost: float,
    names: Sequence[str],
    belief: Sequence[float],
) -> tuple[Measurement, bool]:
    """Join all questions that one command answers; per cause only the best one counts."""
    best: dict[int, _Answerable] = {}
    for answer in answers:
        held = best.get(answer.question.cause)
        if held is None or answer.gain > held.gain:
            best[answer.question.cause] = answer
    ordered = sorted(best.values(), key=lambda one: (-one.gain, one.question.cause))
    touched = sorted(best, key=lambda cause: -belief[cause])
    decides = [names[cause] for cause in touched]
    leader = names[_leader(belief[:-1])] if len(belief) > 1 else names[0]
    if leader not in decides:
        decides.append(leader)
    told = [one for one in ordered if _is_news(one, belief)] or ordered[:1]
    measurement = Measurement(
        fact=ordered[0].fact,
        command=command,
        seconds=cost,
        gain_bits=round(min(math.fsum(one.gain for one in ordered), _entropy(belief)), 4),
        decides_between=tuple(decides[:6]),
        meanings=tuple(_meaning(one, names, belief) for one in told[:_SPOKEN_FOR]),
    )
    return measurement, any(one.flips for one in ordered)


def _is_news(one: _Answerable, belief: Sequence[float]) -> bool:
    cause = one.question.cause
    changes = (one.if_true[cause] - belief[cause], one.if_false[cause] - belief[cause])
    return max(abs(change) for change in changes) >= _NEWS


def _meaning(one: _Answerable, names: Sequence[str], belief: Sequence[float]) -> str:
    cause = one.question.cause
    masses = (belief[cause], one.if_true[cause], one.if_false[cause])
    now, yes, no = (f"{mass * 100:.0f} %" for mass in masses)
    return (
        f"If so ({one.question.label}): {names[cause]} goes from {now} to {yes}; if not, to {no}."
    )
