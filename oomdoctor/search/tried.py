"""What the trials on one axis have told so far: what fits, what fails, what tells nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oomdoctor.model.trial import FIT, HOST_OOM, OOM
from oomdoctor.search.axes import HOST
from oomdoctor.search.forecast import Cap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.trial import OomIdentity, TrialResult
    from oomdoctor.search.axes import Axis


class Tried:
    """Trials by position, and the bracket that follows from them.

    A position fits while no run of it has failed. `low` is the largest that fits below `high`, the
    smallest that fails; -1 and the number of positions where there is none. `halted` is why no
    further trial may be run, here or elsewhere.
    """

    def __init__(self, axis: Axis) -> None:
        """Know nothing."""
        self.axis = axis
        self.fits: dict[int, list[TrialResult]] = {}
        self.failed: dict[int, TrialResult] = {}
        self.untold: dict[int, TrialResult] = {}
        self.slipped: list[TrialResult] = []
        self.trials: list[TrialResult] = []
        self.first_failure: TrialResult | None = None
        self.halted: str | None = None
        self.implied_fits: dict[int, int] = {}
        self.implied_high = axis.count

    @property
    def high(self) -> int:
        """Return the smallest position that fails."""
        return min(self.implied_high, min(self.failed, default=self.axis.count))

    @property
    def low(self) -> int:
        """Return the largest position that fits below the smallest that fails."""
        high = self.high
        fit = [one for known in (self.fits, self.implied_fits) for one in known if one < high]
        return max(fit, default=-1)

    def times(self, position: int) -> int:
        """Return how often a position has fitted, elsewhere included where that implies it."""
        return len(self.fits.get(position, ())) + self.implied_fits.get(position, 0)

    def imply(self, *, fits: dict[int, int] | None = None, fails: int | None = None) -> None:
        """Take over what trials of another search show of this one, without a trial."""
        for position, times in (fits or {}).items():
            self.implied_fits[position] = max(times, self.implied_fits.get(position, 0))
        if fails is not None:
            self.implied_high = min(self.implied_high, fails)

    def learn(self, result: TrialResult) -> None:
        """Take a result in; one at other values than the axis has is of another search."""
        value = result.values.get(self.axis.name)
        if not isinstance(value, (int, float)):
            return
        position = self.axis.position(value)
        self.trials.append(result)
        if result.outcome == FIT:
            self.fits.setdefault(position, []).append(result)
            self.untold.pop(position, None)
        elif result.outcome == (HOST_OOM if self.axis.memory == HOST else OOM):
            self.failed.setdefault(position, result)
            self.untold.pop(position, None)
            first = self.first_failure = self.first_failure or result
            if _told(result.identity) != _told(first.identity):
                self.slipped.append(result)
        else:
            self.untold[position] = result
            if result.outcome in (OOM, HOST_OOM):
                self.slipped.append(result)

    def points(self) -> list[tuple[int, float]]:
        """Return the positions that fit with their peaks, the lowest first."""
        found = []
        for position in sorted(self.fits):
            peaks = [one for one in map(self.peak, self.fits[position]) if one is not None]
            if peaks and position not in self.failed:
                found.append((position, sum(peaks) / len(peaks)))
        return found

    def peak(self, result: TrialResult) -> int | None:
        """Return what a trial used of the memory that this axis is about."""
        return result.host_bytes if self.axis.memory == HOST else result.peak_bytes

    def cap(self, given: float | None) -> Cap | None:
        """Return what there is, from what was given and what trials have shown.

        A peak that fitted was there. A failed trial tells that what it had was there, and that what
        it asked for besides was not. None: nobody has told anything.
        """
        peaks = [value for _, value in self.points()]
        failed = () if self.axis.memory == HOST else self.failed.values()
        rooms = [room for room in map(_room, failed) if room is not None]
        least = max([*peaks, *(had for had, _ in rooms)], default=0.0)
        most = max(least, min((up_to for _, up_to in rooms), default=math.inf))
        if given is None:
            return Cap((least + most) / 2, (most - least) / 4) if rooms else None
        if least <= given <= most:
            return Cap(given)
        # the cap is another than was said: by how much more than is seen, nobody knows
        off = (least - given) if given < least else (given - most)
        beyond = least + off if given < least else most - off
        return Cap(min(max(beyond, least), most), 3 * off)

    @property
    def same_failure(self) -> bool:
        """Say whether the smallest failure is of the kind that the first one was."""
        first, last = self.first_failure, self.failed.get(self.high)
        if first is None or last is None or first.identity is None or last.identity is None:
            return True
        one, other = first.identity, last.identity
        return (one.backend, one.exception) == (other.backend, other.exception)

    def free(self, positions: Sequence[int]) -> list[int]:
        """Return the positions within the bracket that no trial has left without an answer."""
        low, high = self.low, self.high
        return [one for one in positions if low < one < high and one not in self.untold]


def _told(identity: OomIdentity | None) -> tuple[str | None, ...]:
    """Return what tells one failure of a search from another: its size grows with the value."""
    if identity is None:
        return ()
    return (identity.backend, identity.exception, identity.site)


def _room(failed: TrialResult) -> tuple[float, float] | None:
    """Return what a trial that failed had, and what it would have needed; None: not told."""
    had, more = failed.peak_bytes, failed.requested_bytes
    return None if had is None or more is None else (float(had), float(had + more))
