"""What a search asks for, what stops one before its end, and how rounds of several are merged."""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from oomdoctor.model.trial import TrialResult, Value
from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One trial that a search wants: the values of the axes, and which run of them it is.

    `repeat` is 0 for the first run of these values; a later one has to be run again, since whether
    it ends as the first did is what the search wants to know.
    """

    values: Mapping[str, Value] = field(default_factory=dict)
    repeat: int = 0


Round: TypeAlias = tuple[Ask, ...]
Results: TypeAlias = tuple[TrialResult, ...]
Search: TypeAlias = Generator[Round, Results, T]
"""Yields rounds, is sent their results in the same order, returns an answer."""


class Stopped(Exception):  # noqa: N818 - not an error: it ends a search early, as StopIteration does
    """Thrown into a search to end it: it returns the best that it knows, with this reason.

    `results` are those of the round in progress that came to an end; they count.
    """

    def __init__(self, reason: str, results: tuple[TrialResult, ...] = ()) -> None:
        """Store why the search has to end, as one line for the user."""
        super().__init__(reason)
        self.reason = reason
        self.results = results


def run(search: Search[T], trial: Callable[[Ask], TrialResult]) -> T:
    """Drive a search to its end, one trial after the other."""
    try:
        asks = next(search)
        while True:
            asks = search.send(tuple(trial(one) for one in asks))
    except StopIteration as end:
        answer: T = end.value
        return answer


def abreast(searches: Sequence[Search[T]]) -> Search[tuple[T, ...]]:
    """Run independent searches at the same time: a round holds what each of them asks for.

    Stopped reaches all that have not ended, so that each gives its best so far; of the results that
    it carries, each is given those of its own values.
    """
    answers: dict[int, T] = {}
    waiting = {
        number: asks
        for number in range(len(searches))
        if (asks := _next(searches[number], None, number, answers))
    }
    while waiting:
        try:
            results = yield tuple(one for asks in waiting.values() for one in asks)
        except Stopped as stop:
            for number, asks in waiting.items():
                wanted = [dict(one.values) for one in asks]
                own = tuple(one for one in stop.results if dict(one.values) in wanted)
                _next(searches[number], Stopped(stop.reason, own), number, answers)
            break
        shares = iter(results)
        for number, asks in list(waiting.items()):
            following = _next(searches[number], tuple(islice(shares, len(asks))), number, answers)
            waiting.pop(number)
            if following:
                waiting[number] = following
        waiting = dict(sorted(waiting.items()))
    return tuple(answers[number] for number in range(len(searches)))


def _next(
    search: Search[T], given: Results | Stopped | None, number: int, answers: dict[int, T]
) -> Round:
    """Return what a search wants next, or nothing once it has answered."""
    try:
        if isinstance(given, Stopped):
            return search.throw(given)
        return next(search) if given is None else search.send(given)
    except StopIteration as end:
        answers[number] = end.value
        return ()
