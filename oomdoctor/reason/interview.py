"""An interview: the answers given so far, the question worth most per second, what moved.

Everything here is a pure function of the answers and the book; the terminal is in cli/ask.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oomdoctor.facts.questions import questions
from oomdoctor.reason.fallbacks import is_known
from oomdoctor.record import NamedTuple, dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.facts.book import FactBook
    from oomdoctor.facts.question import Choice, Question
    from oomdoctor.reason.supposing import Belief, Supposing

LEAST_BITS = 0.02
"""A question that promises less is not worth putting."""

SETTLED = 0.95
"""A leading cause that is established and this probable needs no further question."""

REFINES_BITS = 0.06
"""What a question has to promise where the leading cause is established already."""

_READING_S = 3.0
_FIRMEST_NATS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a person answered: facts as KEY=VALUE, words or a paste, or neither (not known).

    `drops` are keys that the person takes back; a correction has no question of its own.
    """

    question: str
    text: str = ""
    facts: tuple[str, ...] = ()
    pasted: bool = False
    drops: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """Say whether the person knew anything."""
        return bool(self.facts or self.text)


class Outcome(NamedTuple):
    """One possible answer, how probable it is, and the belief it would lead to."""

    choice: Choice
    probability: float
    belief: Belief


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """A question that may be put next, with what it promises."""

    question: Question
    gain_bits: float
    outcomes: tuple[Outcome, ...]

    @property
    def rate(self) -> float:
        """Return bits per second of effort."""
        return self.gain_bits / (self.question.seconds + _READING_S)


class Move(NamedTuple):
    """How far one cause moved: its name, probability before and after."""

    cause: str
    before: float
    after: float


def stated(answers: Sequence[Answer]) -> tuple[str, ...]:
    """Return all KEY=VALUE statements, each key once: the last answer that names it counts."""
    found: dict[str, str] = {}
    for answer in answers:
        for key in answer.drops:
            found.pop(key, None)
        for item in answer.facts:
            found[item.partition("=")[0]] = item
    return tuple(found.values())


def sources(answers: Sequence[Answer]) -> dict[str, str]:
    """Return for each statement the words that it was made in, where it came from a choice.

    A figure that stands for words ("a fifth or more") is nobody's measurement and says so.
    """
    known = questions()
    found: dict[str, str] = {}
    for answer in answers:
        held = known.get(answer.question)
        for choice in held.choices if held is not None else ():
            for item in choice.sets:
                if item in answer.facts:
                    stands = "a stand-in for the answer" if _is_figure(item) else "answered"
                    found[item.partition("=")[0]] = f"{stands}: {choice.text}"
    return found


def _is_figure(item: str) -> bool:
    return item.partition("=")[2][:1].isdecimal()


def prospects(
    supposing: Supposing, book: FactBook, answers: Sequence[Answer]
) -> tuple[Prospect, ...]:
    """Return the questions that could be put now, the most bits per second first."""
    asked = {answer.question for answer in answers}
    found = [
        prospect(question, supposing)
        for question in questions().values()
        if question.id not in asked and is_open(question, book)
    ]
    return tuple(sorted(found, key=lambda one: (-one.rate, one.question.seconds)))


def next_question(
    options: Sequence[Prospect], *, conclusive: bool = False, leading: float = 0.0
) -> Prospect | None:
    """Return the question to put, None where none is worth it."""
    if not options or (conclusive and leading >= SETTLED):
        return None
    least = REFINES_BITS if conclusive else LEAST_BITS
    return next((one for one in options if one.gain_bits >= least), None)


def is_open(question: Question, book: FactBook) -> bool:
    """Say whether a question makes sense: nothing settles it, nothing known contradicts it."""
    if any(is_known(book, key) for key in question.settled):
        return False
    return all(_holds(item, book) for item in question.only_if)


def _holds(item: str, book: FactBook) -> bool:
    """Say whether KEY=VALUE is known to hold, or KEY!=VALUE is not known to fail."""
    key, equals, wanted = item.partition("=")
    unwanted = key.endswith("!")
    value = book.value(key.rstrip("!"))
    is_same = equals != "" and _word(value) == wanted
    return not is_same if unwanted else is_same


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def prospect(question: Question, supposing: Supposing) -> Prospect:
    """Judge every answer to a question, and how much the answer tells about the cause."""
    beliefs = [supposing.given(choice.sets) for choice in question.choices]
    chances = answer_chances([one.share for one in question.choices], supposing.now, beliefs)
    total = chance_of_each(chances, supposing.now)
    return Prospect(
        question=question,
        gain_bits=information(chances, supposing.now) * question.answered,
        outcomes=tuple(map(Outcome, question.choices, total, beliefs)),
    )


def answer_chances(
    shares: Sequence[float], now: Belief, beliefs: Sequence[Belief]
) -> dict[str, list[float]]:
    """Return for each cause how probable each answer is where that cause holds.

    What an answer adds to a cause's score says how much more often it is given where that cause
    holds than elsewhere, where it is given as often as usual.
    """
    chances = {}
    for name in now.masses:
        ratios = [_ratio(name, now, belief) for belief in beliefs]
        weights = [share * ratio for share, ratio in zip(shares, ratios, strict=True)]
        total = math.fsum(weights)
        chances[name] = [weight / total for weight in weights] if total > 0 else list(shares)
    return chances


def chance_of_each(chances: Mapping[str, Sequence[float]], now: Belief) -> list[float]:
    """Return how probable each answer is, over all causes."""
    rows = [(mass, chances[name]) for name, mass in now.asking.items()]
    return [math.fsum(mass * row[at] for mass, row in rows) for at in range(len(rows[0][1]))]


def information(chances: Mapping[str, Sequence[float]], now: Belief) -> float:
    """Return by how many bits the answer lowers the uncertainty about the cause on average."""
    total = chance_of_each(chances, now)
    return max(
        0.0,
        math.fsum(
            mass * chance * math.log2(chance / all_in_all)
            for name, mass in now.asking.items()
            for chance, all_in_all in zip(chances[name], total, strict=True)
            if chance > 0 and mass > 0
        ),
    )


def _ratio(name: str, now: Belief, then: Belief) -> float:
    if name not in now.scores:
        return 1.0
    score = then.scores.get(name)
    return 0.0 if score is None else math.exp(min(score - now.scores[name], _FIRMEST_NATS))


def moves(before: Belief, after: Belief, *, shown: int = 3) -> tuple[Move, ...]:
    """Return the causes that lead now, and the one that led before, with how far they moved."""
    ordered = sorted(after.scores, key=lambda name: -after.masses[name])[:shown]
    if before.leader in before.scores and before.leader not in ordered:
        ordered.append(before.leader)
    return tuple(
        Move(name, before.masses.get(name, 0.0), after.masses.get(name, 0.0)) for name in ordered
    )
