"""What `confirm` found: causes put to the test, and what that does to their ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.job import Job
    from oomdoctor.model.trial import CommandSpec, Confirmation, TrialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTest:
    """A cause and the experiment for it; without one, `reason` says why there is none."""

    cause: str
    probability: float
    code: str | None = None
    experiment: str | None = None
    title: str = ""
    way: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimalFixes:
    """The cheapest changes that together remove the failure, by name and in words.

    `fits` says that a trial with just these came to its end; `proven`, that none can be left out.
    `patched` are files that were written with the changes in them.
    """

    names: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    fits: bool = False
    proven: bool = False
    unresolved: tuple[str, ...] = ()
    reason: str = ""
    patched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """The answer of a run, or (without confirmations) its plan.

    `before` and `after` are the probabilities of the causes without and with the verdicts;
    `trials_at_most` and `failing` are the price of the plan.
    """

    backend: str
    planned: tuple[PlannedTest, ...]
    confirmations: tuple[Confirmation, ...] = ()
    before: Mapping[str, float] = field(default_factory=dict)
    after: Mapping[str, float] = field(default_factory=dict)
    minimal: MinimalFixes | None = None
    job: Job | None = None
    command: CommandSpec | None = None
    card: str | None = None
    cap_bytes: int | None = None
    host_cap_bytes: int | None = None
    trials: tuple[TrialResult, ...] = ()
    trials_at_most: int = 0
    failing: int = 0
    replayed: int = 0
    seconds: float = 0.0
    folder: str | None = None
    stopped: str | None = None
    notes: tuple[str, ...] = ()
