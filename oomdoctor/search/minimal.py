"""The smallest set of changes that removes a failure: none of its members can be left out.

Changes that cost the least come first: those that take memory elsewhere, then those that take time,
last those that touch what the model learns; within each kind, the one that is expected to save most
for its price. The shortest beginning of that order that fits is found by halving; then its members
are dropped again, the most expensive first. All this trusts that more changes never need more
memory. Where a trial contradicts that, delta debugging goes on without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.trial import FIT, HOST_OOM, OOM, REFUSED
from oomdoctor.record import dataclass
from oomdoctor.search.rounds import Ask, Stopped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from oomdoctor.model.trial import TrialResult, Value
    from oomdoctor.search.rounds import Search

    Chosen = frozenset[str]

FREE, MEMORY, SPEED, QUALITY = "free", "memory", "speed", "quality"
COSTS = (FREE, MEMORY, SPEED, QUALITY)
"""What a change costs, the cheapest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that may remove a failure: what it costs, and what it is expected to save.

    `price` compares changes of the same cost: 1 unless one is known to cost more than another.
    """

    name: str
    saving_bytes: int | None = None
    cost: str = SPEED
    price: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FixSet:
    """The changes that remove a failure, in the order of the search.

    `fits` says that a trial with just these came to its end; `proven`, that each of them is needed:
    without it, a trial failed (or, as more changes need no more memory, is known to fail).
    `unresolved` are changes that were left aside, since trials with them told nothing.
    """

    changes: tuple[str, ...] = ()
    fits: bool = False
    proven: bool = False
    trials: tuple[TrialResult, ...] = ()
    unresolved: tuple[str, ...] = ()
    stopped: str | None = None
    reason: str = ""


def in_order(changes: Iterable[Change]) -> list[Change]:
    """Return changes with the cheapest first, and of those the ones that save most for it."""
    return sorted(
        changes,
        key=lambda one: (COSTS.index(one.cost), -(one.saving_bytes or 0) / one.price, one.name),
    )


def find_minimal(
    changes: Sequence[Change], *, overshoot_bytes: int | None = None
) -> Search[FixSet]:
    """Search for the smallest set; the best so far when it is stopped.

    `overshoot_bytes` is what is missing, as far as it is known: the first trial then takes as many
    changes as should save that.
    """
    ordered = in_order(changes)
    search = _Minimal([one.name for one in ordered])
    try:
        yield from search.whole(_enough(ordered, overshoot_bytes))
    except Stopped as stop:
        search.learn_all(stop.results)
        return search.answer(stop.reason)
    return search.answer(search.halted)


def _enough(ordered: Sequence[Change], overshoot_bytes: int | None) -> int:
    """Return how many changes should do: half of them where nothing is known."""
    if overshoot_bytes is None or all(one.saving_bytes is None for one in ordered):
        return (len(ordered) + 1) // 2
    saved = 0
    for number, one in enumerate(ordered, 1):
        saved += one.saving_bytes or 0
        if saved >= overshoot_bytes:
            return number
    return len(ordered)


class _Minimal:
    """What trials of sets have told, and the steps that are taken from it."""

    def __init__(self, names: list[str]) -> None:
        self.names = list(names)
        self._all = names
        self.trials: list[TrialResult] = []
        self.halted: str | None = None
        self._known: dict[Chosen, bool | None] = {}
        self._aside: list[str] = []
        self._best: Chosen | None = None
        self._monotone = True
        self._doubtful = False
        self._done = False

    def whole(self, first: int) -> Search[None]:
        """Take all steps: the failure itself, the shortest beginning, and what can be dropped."""
        fits = yield from self._fits(frozenset())
        if fits is False:
            yield from self._beginning(first)
        if self._best:
            yield from self._dropping()
        if self._best and not self._monotone:
            yield from self._debugging()
        self._done = True

    def _beginning(self, first: int) -> Search[None]:
        """Find the shortest beginning that fits, by halving, from the one that should be enough."""
        low, high, trying = 0, len(self.names) + 1, first
        while high - low > 1 and low < len(self.names) and not self.halted:
            trying = min(max(trying, low + 1), high - 1, len(self.names))
            fits = yield from self._fits(frozenset(self.names[:trying]))
            if fits is None:
                yield from self._set_aside(low, trying)
                high -= 1
            else:
                low, high = (low, trying) if fits else (trying, high)
                trying = (low + high) // 2

    def _set_aside(self, low: int, high: int) -> Search[None]:
        """Find the change with which trials begin to tell nothing, and go on without it."""
        while high - low > 1 and not self.halted:
            middle = (low + high) // 2
            fits = yield from self._fits(frozenset(self.names[:middle]))
            low, high = (low, middle) if fits is None else (middle, high)
        self._aside.append(self.names.pop(high - 1))

    def _dropping(self) -> Search[None]:
        """Drop what is not needed, the most expensive first."""
        for name in reversed(self._ordered()):
            best = self._best or frozenset()
            if name in best and not self.halted:
                fits = yield from self._fits(best - {name})
                self._doubtful = self._doubtful or fits is None

    def _debugging(self) -> Search[None]:
        """Reduce the best set without trust in more being better: halves, then finer parts."""
        parts = 2
        while self._best and not self.halted:
            best = self._ordered()
            size = -(-len(best) // parts)
            pieces = [frozenset(best[k : k + size]) for k in range(0, len(best), size)]
            self._doubtful = False
            for chosen in [*reversed(pieces), *(frozenset(best) - one for one in reversed(pieces))]:
                fits = None if self.halted else (yield from self._fits(chosen))
                self._doubtful = self._doubtful or fits is None
                if self._best != frozenset(best):
                    break
            else:
                if size == 1:
                    return
            parts = 2 if self._best != frozenset(best) else min(2 * parts, len(best))

    def _fits(self, chosen: Chosen) -> Search[bool | None]:
        """Return whether a set fits: as is known, as follows, or by a trial."""
        told = self._implied(chosen)
        if chosen in self._known or told is not None:
            return self._known.get(chosen, told)
        values: dict[str, Value] = {name: 1 for name in self._all if name in chosen}
        results = yield (Ask(values=values),)
        self.learn_all(results)
        return self._known.get(chosen)

    def learn_all(self, results: Iterable[TrialResult]) -> None:
        """Take results in, and see whether they contradict what was taken for granted."""
        for result in results:
            chosen = frozenset(result.values)
            self.trials.append(result)
            failed = result.outcome in (OOM, HOST_OOM)
            fits = True if result.outcome == FIT else False if failed else None
            self._known[chosen] = fits
            if result.outcome == REFUSED:
                self.halted = result.reason or REFUSED
            if fits is not None and any(
                (fits and not other and known >= chosen) or (other and not fits and known <= chosen)
                for known, other in self._known.items()
                if other is not None
            ):
                self._monotone = False
            if fits and (self._best is None or len(chosen) < len(self._best)):
                self._best = chosen

    def _implied(self, chosen: Chosen) -> bool | None:
        """Return what follows for a set, as long as more changes never need more."""
        if not self._monotone:
            return None
        if any(fits and known <= chosen for known, fits in self._known.items()):
            return True
        if any(fits is False and known >= chosen for known, fits in self._known.items()):
            return False
        return None

    def _ordered(self) -> list[str]:
        best = self._best or frozenset()
        return [name for name in self._all if name in best]

    def answer(self, stopped: str | None) -> FixSet:
        """Return the best set so far."""
        fits = self._best is not None
        reason = ""
        if not fits:
            base = self._known.get(frozenset(), False)
            reason = "even all changes together do not remove the failure"
            if base is None:
                reason = "the run without any change ended without telling whether it fits"
            elif not self.names or stopped:
                reason = "no set of changes is known to remove the failure"
        elif not self._best:
            reason = "the run without any change fits"
        return FixSet(
            changes=tuple(self._ordered()),
            fits=fits,
            proven=fits and self._done and not self._doubtful,
            trials=tuple(self.trials),
            unresolved=tuple(self._aside),
            stopped=stopped,
            reason=reason,
        )
