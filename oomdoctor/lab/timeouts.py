"""How long a trial may take, learned from those that came to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.trial import FIT

if TYPE_CHECKING:
    from oomdoctor.model.trial import TrialResult

TIMES = 10
LEAST_SECONDS, MOST_SECONDS = 5.0, 600.0


class Timeouts:
    """Ten times the longest trial that fitted so far, between 5 seconds and `most_seconds`.

    The longest, not the first: later trials have larger batches, and a search never goes more than
    eight times beyond what fitted. What a trial says while it runs does not give it more time.
    """

    def __init__(self, most_seconds: float = MOST_SECONDS) -> None:
        """Know nothing yet: the first trials have the most."""
        self._most_seconds = most_seconds
        self._longest: float | None = None

    @property
    def seconds(self) -> float:
        """Return the time-out of the next trial."""
        if self._longest is None:
            return self._most_seconds
        return min(max(TIMES * self._longest, LEAST_SECONDS), self._most_seconds)

    def learn(self, result: TrialResult) -> None:
        """Take in a trial that ended."""
        if result.outcome == FIT:
            self._longest = max(self._longest or 0.0, result.seconds)
