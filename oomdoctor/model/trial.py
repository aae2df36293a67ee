"""Values of the lab: a trial, what came of it, a bracket, a curve, and a cause put to the test.

A trial is one run in a fresh process. Searches and experiments ask for trials by their axis values;
a back end runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from oomdoctor.model.job import CardSpec, Job  # noqa: TC001 - messages are read by their types
from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

Value: TypeAlias = int | float | str

FIT = "fit"
OOM = "oom"
HOST_OOM = "host-oom"
TIMEOUT = "timeout"
CRASH = "crash"
REFUSED = "refused"
OUTCOMES = (FIT, OOM, HOST_OOM, TIMEOUT, CRASH, REFUSED)
BACKENDS = ("cuda", "cuda-twin", "virtual", "simulate", "cpu", "formula")

CONFIRMED = "confirmed"
REFUTED = "refuted"
INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class OomIdentity:
    """What tells one failure from another: only the same identity counts as the same failure.

    `backend` is what ran out (cuda, host, ...), `exception` the class name, `site` the innermost
    frame that is not the allocator's own as `file:function` (no folder, no line), `size_class` the
    power of two at or below the bytes that were asked for.
    """

    backend: str
    exception: str
    site: str | None = None
    size_class: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePeak:
    """The highest figures of one phase (load, train step, evaluation, save, generation).

    `allocated_bytes` and `reserved_bytes` are the caching allocator's; `device_bytes` is the whole
    card's use, all processes; `host_bytes` the resident memory of the process tree. None: that
    back end cannot tell.
    """

    name: str
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    device_bytes: int | None = None
    host_bytes: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """A key of a config file that a trial sets in a copy; the user's file is never written."""

    path: str
    key: str
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """A user's command as one trial runs it: placeholders filled, config copies named.

    `edits` are applied to copies, whose paths replace the originals' in `arguments`; `hooks` name
    what is injected (`oomdoctor/inject`), with their arguments: {"no-grad": {"where": "evaluate"}}.
    """

    arguments: tuple[str, ...]
    folder: str
    edits: tuple[FileEdit, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    hooks: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec:
    """What one trial runs: a job or a command, at these values of the axes.

    `steps` are optimizer steps after which a trial ends; `evaluates` and `saves` ask for one of
    each. `cap_bytes` limits the allocator (None: the card's own size), `host_cap_bytes` the host
    memory of the process group. `seconds` is the time-out. `repeat` tells a second run of the same
    values from the first. Exactly one of `job` and `command` is given.
    """

    values: Mapping[str, Value]
    job: Job | None = None
    command: CommandSpec | None = None
    card: CardSpec | None = None
    steps: int = 2
    evaluates: bool = False
    saves: bool = False
    cap_bytes: int | None = None
    host_cap_bytes: int | None = None
    seconds: float | None = None
    repeat: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """What came of a trial.

    The peaks are the largest of all ranks and phases. `identity` is there for oom and host-oom;
    `reason` says in one line why the outcome is what it is. `rank` is the first that failed.
    `output_path` holds what the trial printed. `assumptions` are what the back end took for
    granted; a simulated figure is never a measured one: `backend` tells. `interventions` counts how
    often each injected change took effect: one that never did has shown nothing. `killed` says
    that somebody killed the trial, neither we nor the kernel for want of memory. `held_bytes` is
    what the rank that held most had allocated after each optimizer step; `held_sites` are places
    where something was seen to be kept from step to step.
    """

    key: str
    values: Mapping[str, Value]
    backend: str
    outcome: str
    reason: str = ""
    identity: OomIdentity | None = None
    phases: tuple[PhasePeak, ...] = ()
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    device_bytes: int | None = None
    host_bytes: int | None = None
    requested_bytes: int | None = None
    steps: int = 0
    seconds: float = 0.0
    step_seconds: float | None = None
    tokens_per_second: float | None = None
    rank: int | None = None
    ranks: int = 1
    exit_code: int | None = None
    killed: bool = False
    output_path: str | None = None
    assumptions: tuple[str, ...] = ()
    held_bytes: tuple[int, ...] = ()
    held_sites: tuple[str, ...] = ()
    interventions: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def peak_bytes(self) -> int | None:
        """Return what decides whether a trial fits: reserved where it is known, else allocated."""
        return self.reserved_bytes if self.reserved_bytes is not None else self.allocated_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A peak along an axis, in bytes: constant + linear x + quadratic x² + inverse / x.

    It is at least `floor`: what some phase needs at any value (an optimizer's first step, a load).

    `points` are (value, bytes) as measured; `residual_bytes` the largest distance from them.
    `inverse` is there on an axis on which memory falls. `estimated` says that too little was
    measured for a fit: the curve is that of an estimate, moved through the point that was.
    """

    axis: str
    quantity: str
    constant: float
    linear: float
    quadratic: float = 0.0
    points: tuple[tuple[float, int], ...] = ()
    residual_bytes: int = 0
    inverse: float = 0.0
    estimated: bool = False
    floor: float = 0.0

    def at(self, value: float) -> float:
        """Return the bytes at a value of the axis."""
        straight = self.constant + self.linear * value + self.quadratic * value * value
        grown = straight + self.inverse / value if self.inverse else straight
        return max(grown, self.floor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """The edge on one axis: `fits_at` fits (`fits` times), `ooms_at` does not, `step` apart.

    Without `fits_at` nothing of the range fits; without `ooms_at` all of it does. `proven` says
    that the two are one step apart, and that the lower fitted twice. `inferred` names the ends that
    follow from trials of another row of a frontier, since memory grows along both axes.
    """

    axis: str
    step: float
    fits_at: float | None = None
    ooms_at: float | None = None
    fits: int = 0
    proven: bool = False
    identity: OomIdentity | None = None
    inferred: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """A threshold: the bracket, a safe value below it, and how the peak grows.

    `stopped` says why a search ended before it was proven (budget, interrupt, guard). `slipped`
    are trials that failed otherwise than the first failure did. `best` is the fastest setting that
    fits, where speed was asked for.
    """

    bracket: Bracket
    safe_value: float | None = None
    headroom: float = 0.05
    curve: Curve | None = None
    trials: tuple[TrialResult, ...] = ()
    stopped: str | None = None
    slipped: tuple[TrialResult, ...] = ()
    best: TrialResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """For each value of the outer axis the edge on the inner one."""

    outer: str
    inner: str
    rows: tuple[tuple[float, SearchAnswer], ...] = ()
    trials: tuple[TrialResult, ...] = ()
    stopped: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """A cause put to the test: what failed, what the treatment and the control did.

    `experiment` names the intervention, `title` says in words what it changes. `verdict` is
    confirmed, refuted or inconclusive, `reason` says why in one sentence. The predicted saving is
    an estimate, the measured one the difference of what the back end counted; where the baseline
    was cut short by its failure, `at_least` says that it is a lower bound. `whole` is the run as it
    is without the cap, where there is memory for one. `growth_bytes` is what the run as it is holds
    more after each optimizer step than after the one before, `treated_growth_bytes` the same of the
    treated run; `sites` are the places in the code where something is seen to be kept.
    """

    cause: str
    verdict: str
    reason: str
    experiment: str
    title: str = ""
    code: str | None = None
    baseline: tuple[TrialResult, ...] = ()
    treated: tuple[TrialResult, ...] = ()
    control: tuple[TrialResult, ...] = ()
    whole: tuple[TrialResult, ...] = ()
    predicted_saving_bytes: int | None = None
    measured_saving_bytes: int | None = None
    at_least: bool = False
    growth_bytes: int | None = None
    treated_growth_bytes: int | None = None
    sites: tuple[str, ...] = ()
