"""Who runs the trials of a round: one place after the other, or several places side by side."""

from __future__ import annotations

import queue
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from oomdoctor.errors import GuardError
from oomdoctor.model.trial import REFUSED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.lab.places import Place
    from oomdoctor.model.trial import TrialResult, TrialSpec

_POLL_SECONDS = 0.2


class Hears(Protocol):
    """Hears of trials while they run; calls may come from several threads."""

    def began(self, spec: TrialSpec) -> None:
        """A trial starts."""

    def heard(self, spec: TrialSpec, text: str) -> None:
        """A trial is where the text says."""

    def ended(self, result: TrialResult) -> None:
        """A trial came to its end."""


class Executor(Protocol):
    """Runs the trials of a round."""

    width: int
    """How many trials run side by side."""

    def run(self, specs: Sequence[TrialSpec], hears: Hears) -> tuple[TrialResult, ...]:
        """Run trials and return their results in the same order.

        A GuardError or KeyboardInterrupt ends those that run and leaves; what ended was heard.
        """


class OneByOne:
    """Runs one trial after the other in one place."""

    width = 1

    def __init__(self, place: Place) -> None:
        """Keep the place, which is open."""
        self._place = place

    def run(self, specs: Sequence[TrialSpec], hears: Hears) -> tuple[TrialResult, ...]:
        """Run trials in their order."""
        return tuple(_run(self._place, spec, hears) for spec in specs)


class SideBySide:
    """Runs trials in several places at once, each in a thread that waits for its process."""

    def __init__(self, places: Sequence[Place]) -> None:
        """Keep the places, which are open."""
        self.width = len(places)
        self._places = tuple(places)

    def run(self, specs: Sequence[TrialSpec], hears: Hears) -> tuple[TrialResult, ...]:
        """Run trials wherever a place is free."""
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

        work: queue.SimpleQueue[tuple[int, TrialSpec]] = queue.SimpleQueue()
        for one in enumerate(specs):
            work.put(one)
        results: dict[int, TrialResult] = {}
        with ThreadPoolExecutor(self.width, thread_name_prefix="oomdoctor-place") as pool:
            served = [
                pool.submit(_serve, place, work, results, hears)
                for place in self._places[: len(specs)]
            ]
            try:
                while wait(served, _POLL_SECONDS, FIRST_EXCEPTION).not_done:
                    if any(one.done() and one.exception() for one in served):
                        break
            except KeyboardInterrupt:
                self._stop("interrupted", work)
                raise
            failures = [error for one in served if one.done() and (error := one.exception())]
            if failures:
                self._stop(str(failures[0]), work)
                raise failures[0]
        return tuple(results[number] for number in range(len(specs)))

    def _stop(self, reason: str, work: queue.SimpleQueue[tuple[int, TrialSpec]]) -> None:
        """End the trials that run, and let no other begin."""
        with suppress(queue.Empty):
            while True:
                work.get_nowait()
        for place in self._places:
            place.stop(reason)


def _serve(
    place: Place,
    work: queue.SimpleQueue[tuple[int, TrialSpec]],
    results: dict[int, TrialResult],
    hears: Hears,
) -> None:
    """Run trials in one place until there are none."""
    while True:
        try:
            number, spec = work.get_nowait()
        except queue.Empty:
            return
        results[number] = _run(place, spec, hears)


def _run(place: Place, spec: TrialSpec, hears: Hears) -> TrialResult:
    hears.began(spec)
    result = place.run(spec, lambda text: hears.heard(spec, text))
    if result.outcome == REFUSED:
        raise GuardError(result.reason or "the trial was refused")
    hears.ended(result)
    return result
