"""Who runs the trials of a round: one place after the other, or several places side by side."""

from __future__ import annotations

import queue
import threading
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
        work: queue.SimpleQueue[tuple[int, TrialSpec]] = queue.SimpleQueue()
        for one in enumerate(specs):
            work.put(one)
        results: dict[int, TrialResult] = {}
        failures: list[BaseException] = []
        threads = [
            threading.Thread(
                target=_serve, args=(place, work, results, failures, hears), daemon=True
            )
            for place in self._places[: len(specs)]
        ]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                if failures:
                    self._stop(str(failures[0]))
                threads[0].join(_POLL_SECONDS)
                threads.append(threads.pop(0))
        except BaseException:
            self._stop("interrupted")
            for thread in threads:
                thread.join()
            raise
        if failures:
            raise failures[0]
        return tuple(results[number] for number in range(len(specs)))

    def _stop(self, reason: str) -> None:
        for place in self._places:
            place.stop(reason)


def _serve(
    place: Place,
    work: queue.SimpleQueue[tuple[int, TrialSpec]],
    results: dict[int, TrialResult],
    failures: list[BaseException],
    hears: Hears,
) -> None:
    """Run trials in one place until there are none, or one place failed."""
    while not failures:
        try:
            number, spec = work.get_nowait()
        except queue.Empty:
            return
        try:
            results[number] = _run(place, spec, hears)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            failures.append(error)


def _run(place: Place, spec: TrialSpec, hears: Hears) -> TrialResult:
    hears.began(spec)
    result = place.run(spec, lambda text: hears.heard(spec, text))
    if result.outcome == REFUSED:
        raise GuardError(result.reason or "the trial was refused")
    hears.ended(result)
    return result
