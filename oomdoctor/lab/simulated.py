"""The `formula` back end: trials that are computed from a function of the axes' values.

    backend = FormulaBackend(lambda values: 4 * GIB + values["batch"] * GIB, cap_bytes=24 * GIB)
    backend.run(TrialSpec(values={"batch": 20}), hear=print).outcome      # "fit"

No process is started and no memory taken, so that searches and experiments can be tested, compared
and shown anywhere. The same seed gives the same results in any order: what a trial adds to the
formula as noise depends on its values and its repeat alone.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from oomdoctor.lab.keys import key_of
from oomdoctor.model.trial import (
    FIT,
    HOST_OOM,
    OOM,
    OUTCOMES,
    OomIdentity,
    PhasePeak,
    TrialResult,
)
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.model.trial import TrialSpec, Value

    Peak = Callable[[Mapping[str, Value]], float]

FORMULA = "formula"
_REQUEST_SHARE = 64  # the request that fails is this part of the peak, or what is missing
_ALLOCATED_SHARE = 0.95  # of what is reserved: the rest is kept free by the allocator
_ASSUMPTION = "computed from a formula, not measured"


class FormulaBackend:
    """Computes what would come of a trial.

    `peak` gives the bytes that have to be had at the values of a trial. It fits while they, noise
    included, are at most `cap_bytes` (a trial's own cap goes before). `noise_bytes` is the most
    that a run differs from the formula by, either way. `unseen_bytes` are not in the peak that is
    reported, though they have to be had: a context, other processes. `host` is the peak of the host
    and its cap. `speed` gives the tokens of a step and its seconds. `outcome` may say another
    outcome before memory is looked at (crash, timeout, ...), or None.
    """

    name = FORMULA

    def __init__(
        self,
        peak: Peak,
        *,
        cap_bytes: int | None = None,
        noise_bytes: float = 0,
        seed: int = 0,
        unseen_bytes: int = 0,
        host: tuple[Peak, int] | None = None,
        speed: Callable[[Mapping[str, Value]], tuple[float, float]] | None = None,
        outcome: Callable[[Mapping[str, Value]], str | None] | None = None,
    ) -> None:
        """Store the formula; nothing is computed yet, and no trial counted."""
        self._peak = peak
        self._cap_bytes = cap_bytes
        self._host = host
        self._noise_bytes = noise_bytes
        self._unseen_bytes = unseen_bytes
        self._seed = seed
        self._speed = speed
        self._outcome = outcome
        self.trials: list[TrialResult] = []

    def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
        """Compute one trial, and keep it in `trials`."""
        hear("computing")
        result = self._result(spec)
        self.trials.append(result)
        return result

    def _result(self, spec: TrialSpec) -> TrialResult:
        said = None if self._outcome is None else self._outcome(spec.values)
        if said is not None and said not in OUTCOMES:
            raise ValueError(f"no outcome of a trial: {said!r}")
        need = self._peak(spec.values) + self._noise(spec)
        cap = spec.cap_bytes if spec.cap_bytes is not None else self._cap_bytes
        host = None if self._host is None else round(self._host[0](spec.values))
        if said == OOM or (said is None and cap is not None and need > cap):
            return self._failed(spec, need, cap)
        if host is not None and self._host is not None:
            host_cap = spec.host_cap_bytes if spec.host_cap_bytes is not None else self._host[1]
            if said is None and host > host_cap:
                identity = OomIdentity(backend="host", exception="SIGKILL")
                return self._ended(spec, HOST_OOM, f"{host:,} bytes of the host", identity)
        if said not in (FIT, None):
            return self._ended(spec, str(said), "as the formula has it")
        return self._fitted(spec, round(need), host)

    def _fitted(self, spec: TrialSpec, need: int, host: int | None) -> TrialResult:
        """Return a trial that came to its end, with its peaks and its speed."""
        reported = max(0, need - self._unseen_bytes)
        tokens, seconds = (None, None) if self._speed is None else self._speed(spec.values)
        phase = PhasePeak(
            name="train step",
            allocated_bytes=round(reported * _ALLOCATED_SHARE),
            reserved_bytes=reported,
            device_bytes=need,
            host_bytes=host,
            seconds=seconds,
        )
        return TrialResult(
            key=key_of(spec),
            values=dict(spec.values),
            backend=self.name,
            outcome=FIT,
            phases=(phase,),
            allocated_bytes=phase.allocated_bytes,
            reserved_bytes=reported,
            device_bytes=need,
            host_bytes=host,
            steps=spec.steps,
            seconds=(seconds or 0.0) * spec.steps,
            step_seconds=seconds,
            tokens_per_second=tokens / seconds if tokens is not None and seconds else None,
            exit_code=0,
            assumptions=(_ASSUMPTION,),
        )

    def _failed(self, spec: TrialSpec, need: float, cap: int | None) -> TrialResult:
        """Return a trial that ran out of memory: the last request is what was too much."""
        room = need if cap is None else cap
        requested = max(1, round(need / _REQUEST_SHARE))
        # what was there for it is less than the request
        reserved = max(0, round(room - self._drawn(spec) * requested) - self._unseen_bytes)
        identity = OomIdentity(
            backend="cuda",
            exception="OutOfMemoryError",
            site="formula.py:step",
            size_class=1 << (requested.bit_length() - 1),
        )
        failed = self._ended(spec, OOM, f"{requested:,} bytes cannot be had", identity)
        return replace(
            failed,
            requested_bytes=requested,
            reserved_bytes=reserved,
            allocated_bytes=max(0, min(reserved, round(need) - self._unseen_bytes - requested)),
        )

    def _ended(
        self, spec: TrialSpec, outcome: str, reason: str, identity: OomIdentity | None = None
    ) -> TrialResult:
        return TrialResult(
            key=key_of(spec),
            values=dict(spec.values),
            backend=self.name,
            outcome=outcome,
            reason=reason,
            identity=identity,
            exit_code=1,
            assumptions=(_ASSUMPTION,),
        )

    def _noise(self, spec: TrialSpec) -> float:
        """Return what this run adds to the formula."""
        return (2 * self._drawn(spec) - 1) * self._noise_bytes

    def _drawn(self, spec: TrialSpec) -> float:
        """Return a number from 0 to 1: the same for the same values, repeat and seed."""
        told = json.dumps([self._seed, dict(spec.values), spec.repeat], sort_keys=True)
        return int.from_bytes(hashlib.sha256(told.encode()).digest()[:7], "big") / (1 << 56)
