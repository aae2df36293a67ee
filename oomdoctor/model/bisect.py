"""What `bisect` found, with all that a report says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.job import Job
    from oomdoctor.model.trial import (
        CommandSpec,
        Curve,
        Frontier,
        SearchAnswer,
        TrialResult,
        Value,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisRange:
    """An axis as it was searched; `memory` is device or host."""

    name: str
    low: float
    high: float
    step: float
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCurve:
    """The curve that a search began with, and who computed it: simulate or formula.

    `error` is the share by which it may be off; `why_not` says why there is none.
    """

    curve: Curve | None = None
    engine: str | None = None
    error: float = 0.0
    why_not: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisected:
    """The answer of a run: a search on one axis, or a frontier over two.

    `backend` says who ran the trials, and so what the figures are worth. `job` or `command` is what
    ran. `limit_bytes` is what decides: the cap, or what the card gives. `stopped` says why the run
    ended before it was done; `best` is the fastest trial that fits, where speed was asked for.
    `replayed` trials were taken from the run that was resumed.
    """

    backend: str
    axes: tuple[AxisRange, ...]
    answer: SearchAnswer | None = None
    frontier: Frontier | None = None
    best: TrialResult | None = None
    job: Job | None = None
    command: CommandSpec | None = None
    card: str | None = None
    cap_bytes: int | None = None
    limit_bytes: int | None = None
    host_cap_bytes: int | None = None
    start: StartCurve = field(default_factory=StartCurve)
    trials: tuple[TrialResult, ...] = ()
    replayed: int = 0
    seconds: float = 0.0
    folder: str | None = None
    executor: str = "one"
    width: int = 1
    stopped: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def proven(self) -> bool:
        """Say whether every edge that was asked for was found and verified."""
        if self.answer is not None:
            return _settled(self.answer)
        rows = () if self.frontier is None else self.frontier.rows
        return bool(rows) and all(_settled(answer) for _, answer in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectPlan:
    """What a run would do: where it starts, the trials that are expected, and their price.

    `expected` are the values of the trials where the estimate is right; `most` is how many there
    are at worst; `seconds_each` bounds the first of them.
    """

    backend: str
    axes: tuple[AxisRange, ...]
    expected: tuple[Mapping[str, Value], ...]
    most: int
    seconds_each: float
    start: StartCurve = field(default_factory=StartCurve)
    job: Job | None = None
    command: CommandSpec | None = None
    card: str | None = None
    cap_bytes: int | None = None
    limit_bytes: int | None = None
    host_cap_bytes: int | None = None
    executor: str = "one"
    width: int = 1
    notes: tuple[str, ...] = ()


def _settled(answer: SearchAnswer) -> bool:
    """Say whether a search has its answer: a proven edge, or one that lies outside the range."""
    bracket = answer.bracket
    outside = bracket.fits_at is None or bracket.ooms_at is None
    nothing = bracket.fits_at is None and bracket.ooms_at is None
    return bracket.proven or (outside and not nothing and answer.stopped is None)
