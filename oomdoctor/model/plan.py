"""Values of the answer: the balance sheet, what to change, what to measure, the diagnosis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.enums import Origin, Safety
from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.core import Artifact, Conflict, Fact, Failure, Finding, Quote, RuleFault
    from oomdoctor.model.estimate import Owner
    from oomdoctor.model.lint import UnderstoodRow


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One owner's share of the card: bytes, the half width of rounding, and who says so."""

    owner: str
    bytes: int
    slack_bytes: int = 0
    origin: Origin = Origin.STATED
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The balance sheet of one device, and how far the failed request overshot.

    `overshoot_bytes` is requested - free (or - what a cap left): a lower bound of what is missing.
    `contradiction_bytes` is by how much the owners exceed the capacity, beyond rounding.
    """

    capacity_bytes: int | None = None
    entries: tuple[LedgerEntry, ...] = ()
    overshoot_bytes: int | None = None
    unexplained_bytes: int | None = None
    contradiction_bytes: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintMatch:
    """A product of the job's dimensions whose bytes equal the failed request within its rounding.

    `weight` is 1 / (1 + matches to expect by chance) times what the failing frame says.
    """

    bytes: int
    expression: str
    meaning: str
    values: Mapping[str, int]
    weight: float
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """All near matches of the failed request, best first, and how many chance would give."""

    matches: tuple[FingerprintMatch, ...] = ()
    tried: int = 0
    expected_by_chance: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Bytes that a fix saves, always an interval, and the formula they come from."""

    low_bytes: int
    likely_bytes: int
    high_bytes: int
    formula: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A change of one file: a unified diff, or (without a file) the settings to make.

    `dialect` names the framework whose spelling it uses (`hf_trainer`, `axolotl`, `env`, ...).
    """

    dialect: str
    settings: Mapping[str, object]
    file: str | None = None
    diff: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prescription:
    """A fix for a cause: patches, saving, price; `sufficient` is None unless a peak backs it."""

    fix_id: str
    cause: str
    code: str
    title: str
    safety: Safety
    patches: tuple[Patch, ...] = ()
    saving: Saving | None = None
    time_factor: float = 1.0
    quality: str = "none"
    sufficient: bool | None = None
    cautions: tuple[str, ...] = ()
    advice: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The next thing to measure: exact command, its price, and what each answer would mean."""

    fact: str
    command: str
    seconds: float
    gain_bits: float
    decides_between: tuple[str, ...] = ()
    meanings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotEvaluated:
    """A rule whose gate stayed open, and the facts that would close it."""

    code: str
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSummary:
    """What one rank showed (ranks that agree are folded into one line).

    `first` is True for the rank that failed first, `consequence` where its failure follows from
    another one. `time` is the stamp of the line that tells it, `artifacts` the inputs that speak
    of these ranks, `node` their machine where several machines have ranks of the same numbers.
    """

    ranks: tuple[int, ...]
    failed: bool
    headline: str
    order: int
    first: bool = False
    consequence: bool = False
    time: str | None = None
    artifacts: tuple[str, ...] = ()
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The whole answer, the same values that the JSON shows.

    `answer`: cause, need_evidence, not_gpu_oom or nothing_found.
    `resource`: gpu, cap, host, not_memory or unknown.
    `traced` are the requests of the simulated job that print as the failed one, likeliest first.
    """

    answer: str
    resource: str
    conclusive: bool
    headline: str
    event: Failure | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    ledger: Ledger | None = None
    fingerprint: Fingerprint | None = None
    causes: tuple[Finding, ...] = ()
    other_probability: float = 0.0
    side_findings: tuple[Finding, ...] = ()
    prescriptions: tuple[Prescription, ...] = ()
    suppressed: tuple[str, ...] = ()
    next_measurements: tuple[Measurement, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    faults: tuple[RuleFault, ...] = ()
    ranks: tuple[RankSummary, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    notes: tuple[str, ...] = ()
    signs: tuple[Quote, ...] = ()
    understood: tuple[UnderstoodRow, ...] = ()
    traced: tuple[Owner, ...] = ()

    @property
    def job_files(self) -> tuple[str, ...]:
        """Return the files that describe the job."""
        found = [one for one in self.artifacts if one.kind in ("config", "script")]
        return tuple(one.path or one.id for one in found)
