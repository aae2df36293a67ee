"""Drives a search: its rounds become trials, their results go into the journal and back to it.

A search asks by values alone. Here they become specs, those that the journal knows are answered
from it, the rest run wherever the executor has room. Whatever ends a run early, the search is told,
and answers with the best that it knows.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from oomdoctor.errors import GuardError
from oomdoctor.lab.keys import key_of
from oomdoctor.lab.timeouts import MOST_SECONDS, Timeouts
from oomdoctor.record import NamedTuple, dataclass, replace
from oomdoctor.search.rounds import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.lab.executors import Executor
    from oomdoctor.lab.journal import Journal
    from oomdoctor.model.trial import TrialResult, TrialSpec
    from oomdoctor.search.rounds import Ask, Round, Search

T = TypeVar("T")
INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most trials, and the seconds after which none starts any more; None: no bound.

    `trial_seconds` is the longest that one of them may take.
    """

    trials: int | None = None
    seconds: float | None = None
    trial_seconds: float = MOST_SECONDS


class Tells(Protocol):
    """Shows a run to a person."""

    def began(self, spec: TrialSpec) -> None:
        """A trial starts."""

    def heard(self, spec: TrialSpec, text: str) -> None:
        """A trial is where the text says."""

    def ended(self, result: TrialResult, *, replayed: bool) -> None:
        """A trial came to its end, now or in the run that is resumed."""


class Driven(NamedTuple, Generic[T]):
    """The answer of a search; why it was refused, or whether it was interrupted, if it was."""

    answer: T
    refused: GuardError | None = None
    interrupted: bool = False


class _EndError(Exception):
    """A run ends before its search does."""

    def __init__(self, reason: str, cause: BaseException | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.cause = cause


class Drive:
    """Runs searches with one journal, one budget and one set of time-outs."""

    def __init__(
        self,
        executor: Executor,
        journal: Journal,
        *,
        spec_of: Callable[[Ask], TrialSpec],
        tells: Tells,
        budget: Budget | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin the time of the budget."""
        self._executor = executor
        self._journal = journal
        self._spec_of = spec_of
        self._tells = tells
        self._budget = budget or Budget()
        self._clock = clock
        self._began = clock()
        self._spent = 0
        self._timeouts = Timeouts(self._budget.trial_seconds)
        self._mutex = threading.Lock()
        self._seen: set[str] = set()
        self._again: set[str] = set()

    def run(self, search: Search[T]) -> Driven[T]:
        """Run a search to its answer."""
        try:
            asks = next(search)
            while True:
                results: dict[int, TrialResult] = {}
                try:
                    self._round(asks, results)
                except _EndError as end:
                    return self._stopped(search, end, results)
                asks = search.send(tuple(results[number] for number in range(len(asks))))
        except StopIteration as end:
            return Driven(end.value)

    def _stopped(
        self, search: Search[T], end: _EndError, results: dict[int, TrialResult]
    ) -> Driven[T]:
        """Tell a search to end, and return the best that it knows."""
        refused = end.cause if isinstance(end.cause, GuardError) else None
        interrupted = isinstance(end.cause, KeyboardInterrupt)
        ended = tuple(results[number] for number in sorted(results))
        try:
            search.throw(Stopped(end.reason, ended))
        except StopIteration as answered:
            return Driven(answered.value, refused, interrupted)
        raise RuntimeError("a search went on after it was stopped")

    def _round(self, asks: Round, results: dict[int, TrialResult]) -> None:
        """Answer a round, from the journal as far as it goes; _EndError where the run ends."""
        waiting: dict[str, list[int]] = {}
        specs: list[TrialSpec] = []
        for number, ask in enumerate(asks):
            spec = self._spec_of(ask)
            key = key_of(spec)
            known = self._journal.results.get(key)
            if known is not None:
                results[number] = known
                self._replayed(known)
            elif key in waiting:
                waiting[key].append(number)
            else:
                waiting[key] = [number]
                specs.append(spec)
        while specs:
            some = self._affordable(specs)
            specs = specs[len(some) :]
            try:
                done = self._executor.run(some, self)
                again = {one.key for one in done if self._was_chance(one)}
                specs = [*(one for one in some if key_of(one) in again), *specs]
            except GuardError as error:
                raise _EndError(error.message, error) from error
            except KeyboardInterrupt as error:
                raise _EndError(INTERRUPTED, error) from error
            finally:
                for key, numbers in waiting.items():
                    if key in self._journal.results:
                        results.update(dict.fromkeys(numbers, self._journal.results[key]))

    def _was_chance(self, result: TrialResult) -> bool:
        """Say whether a trial that somebody killed runs once more: its values did not do that."""
        if not result.killed or result.key in self._again:
            return False
        self._again.add(result.key)
        return True

    def _affordable(self, specs: Sequence[TrialSpec]) -> list[TrialSpec]:
        """Return the next trials with their time-outs, as many as budget and width allow."""
        trials, seconds = self._budget.trials, self._budget.seconds
        if trials is not None and self._spent >= trials:
            raise _EndError(f"the budget of {trials} trials is spent")
        if seconds is not None and self._clock() - self._began >= seconds:
            raise _EndError(f"the budget of {seconds:g} seconds is spent")
        left = len(specs) if trials is None else trials - self._spent
        some = specs[: min(left, self._executor.width)]
        self._spent += len(some)
        return [replace(spec, seconds=self._timeouts.seconds) for spec in some]

    def _replayed(self, result: TrialResult) -> None:
        self._timeouts.learn(result)
        if result.key not in self._seen:
            self._seen.add(result.key)
            self._tells.ended(result, replayed=True)

    def began(self, spec: TrialSpec) -> None:
        """Record that a trial starts."""
        with self._mutex:
            self._journal.begin(key_of(spec), spec.values)
            self._tells.began(spec)

    def heard(self, spec: TrialSpec, text: str) -> None:
        """Show where a trial is."""
        with self._mutex:
            self._tells.heard(spec, text)

    def ended(self, result: TrialResult) -> None:
        """Record what came of a trial before anything else is done with it."""
        with self._mutex:
            self._journal.finish(result)
            self._seen.add(result.key)
            self._timeouts.learn(result)
            self._tells.ended(result, replayed=False)
