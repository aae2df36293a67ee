"""Runs the trials of a job in workers: on a card, a virtual one, or counted on the host."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from oomdoctor.lab.classify import kernel_kills
from oomdoctor.lab.host_use import proportional_bytes
from oomdoctor.lab.job_values import job_of
from oomdoctor.lab.keys import key_of
from oomdoctor.lab.protocol import Progress, RunRequest, RunResult
from oomdoctor.lab.session import WorkerError, WorkerSession
from oomdoctor.lab.twin import scaled, twin_of
from oomdoctor.model.trial import (
    CRASH,
    FIT,
    HOST_OOM,
    OOM,
    REFUSED,
    TIMEOUT,
    OomIdentity,
    TrialResult,
)
from oomdoctor.record import replace
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from oomdoctor.lab.protocol import OomTold
    from oomdoctor.model.job import Job
    from oomdoctor.model.trial import PhasePeak, TrialSpec

LONGEST_S = 600.0
HOST, CPU, TWIN = "host", "cpu", "cuda-twin"
_OVER_THE_CAP = OomIdentity(backend=HOST, exception="cap")
_LOOK_S = 0.2
OUTPUT = "output.log"
_DEVICES = {"cuda": "cuda", "cuda-twin": "cuda", "virtual": "cuda", "cpu": "cpu"}
_SEEN = "CUDA_VISIBLE_DEVICES"  # a session hides the cards unless told otherwise


class JobBackend:
    """Each trial gets a worker of its own, so that nothing of one is left for the next.

    `name` is cuda, cuda-twin, virtual or cpu; a cuda-twin runs a smaller job under a smaller cap
    (lab/twin.py). `python` has torch; `environment` is what the worker gets on top (of a virtual
    card, or which card it may see; None takes a variable away). `stop` is asked several times a
    second; a reason ends the trial as refused. `folder` is that of the run, where what a trial
    printed is kept. `kernel_kills` counts what the kernel killed for memory.
    """

    def __init__(
        self,
        name: str,
        *,
        python: str | None = None,
        environment: Mapping[str, str | None] | None = None,
        stop: Callable[[], str | None] = lambda: None,
        folder: Path | None = None,
        kernel_kills: Callable[[], int | None] = kernel_kills,
    ) -> None:
        """Start nothing yet."""
        self.name = name
        self._device = _DEVICES[name]
        self._python = python
        given = dict(environment or {})
        if self._device != CPU:
            given.setdefault(_SEEN, os.environ.get(_SEEN))
        self._environment = given
        self._stop = stop
        self._folder = folder
        self._kernel_kills = kernel_kills

    def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
        """Run one trial of a job to its end."""
        job, cap = job_of(spec), spec.cap_bytes
        twin = None
        if self.name == TWIN:
            twin = None if cap is None else twin_of(job, cap)
            if twin is None:
                return self._without_twin(spec)
            job, cap = twin.job, twin.cap_bytes
        began, before = time.monotonic(), self._kernel_kills()
        limit = _HostLimit(spec.host_cap_bytes, self._stop)
        session = WorkerSession(
            python=self._python,
            environment=self._environment,
            progress=hear,
            seconds=spec.seconds or LONGEST_S,
            stop=limit.reason,
            output=self._output_of(spec),
        )
        request = RunRequest(job=job, device=self._device, cap_bytes=cap, steps=spec.steps)
        with session:
            limit.pid = session.pid
            try:
                answer = session.ask(request)
            except WorkerError as error:
                ended = self._ended(spec, error, session.heard, time.monotonic() - began)
                if limit.is_passed:
                    return replace(ended, outcome=HOST_OOM, identity=_OVER_THE_CAP)
                return _judged(ended, before, self._kernel_kills())
            versions = session.hello.versions if session.hello else {}
        if not isinstance(answer, RunResult):
            raise WorkerError("crashed", f"the worker answered with a {type(answer).__name__}")
        result = self._result(spec, job, answer, versions)
        return result if twin is None else scaled(result, twin)

    def _without_twin(self, spec: TrialSpec) -> TrialResult:
        why = "it has no cap" if spec.cap_bytes is None else "its layers cannot be made fewer"
        return TrialResult(
            key=key_of(spec),
            values=spec.values,
            backend=self.name,
            outcome=CRASH,
            reason=f"this job has no scaled twin: {why}; --backend cuda runs the job itself",
        )

    def _result(
        self, spec: TrialSpec, job: Job, answer: RunResult, versions: Mapping[str, str]
    ) -> TrialResult:
        oom = answer.oom
        outcome = FIT if oom is None else HOST_OOM if oom.backend == HOST else OOM
        step = answer.step_seconds
        made = TrialResult(
            key=key_of(spec),
            values=spec.values,
            backend=self.name,
            outcome=outcome,
            reason="" if oom is None else oom.message,
            identity=None if oom is None else identity_of(oom),
            requested_bytes=None if oom is None else oom.requested_bytes,
            steps=sum(one.name.startswith("step") for one in answer.phases) - (oom is not None),
            seconds=answer.seconds,
            step_seconds=step,
            tokens_per_second=None if not step else tokens_of(job) / step,
            assumptions=answer.assumptions,
            versions=versions,
            output_path=self._output_path(spec),
        )
        return with_phases(made, answer.phases)

    def _output_of(self, spec: TrialSpec) -> Path | None:
        return None if self._folder is None else self._folder / "trials" / key_of(spec) / OUTPUT

    def _output_path(self, spec: TrialSpec) -> str | None:
        path = self._output_of(spec)
        return None if path is None else str(path)

    def _ended(
        self, spec: TrialSpec, error: WorkerError, heard: Progress | None, seconds: float
    ) -> TrialResult:
        """Return what came of a trial whose worker did not answer."""
        outcomes = {"timed-out": TIMEOUT, "killed": HOST_OOM, "stopped": REFUSED}
        where = f" (in {heard.text})" if heard is not None and heard.text else ""
        outcome = outcomes.get(error.kind, CRASH)
        killed = OomIdentity(backend=HOST, exception="SIGKILL")
        made = TrialResult(
            key=key_of(spec),
            values=spec.values,
            backend=self.name,
            outcome=outcome,
            reason=f"{error.message}{where}",
            identity=killed if outcome == HOST_OOM else None,
            seconds=seconds,
            output_path=self._output_path(spec),
        )
        return with_phases(made, () if heard is None else heard.phases)


class _HostLimit:
    """Ends a trial whose worker holds more of the host than it was given, or for another reason."""

    def __init__(self, cap_bytes: int | None, stop: Callable[[], str | None]) -> None:
        self.pid: int | None = None
        self.is_passed = False
        self._cap_bytes = cap_bytes
        self._stop = stop
        self._next = 0.0

    def reason(self) -> str | None:
        """Return why the trial has to end."""
        if self._cap_bytes is not None and self.pid is not None and time.monotonic() >= self._next:
            self._next = time.monotonic() + _LOOK_S
            held = proportional_bytes(self.pid)
            if held > self._cap_bytes:
                self.is_passed = True
                given = format_size(self._cap_bytes)
                return f"its process held {format_size(held)} on the host, of {given} given to it"
        return self._stop()


def _judged(result: TrialResult, before: int | None, after: int | None) -> TrialResult:
    """Return what a kill means: want of memory, unless the kernel's count says that it was not."""
    if result.outcome != HOST_OOM or before is None or before != after:
        return result
    return replace(result, outcome=CRASH, identity=None, killed=True)


def identity_of(oom: OomTold) -> OomIdentity:
    """Return what tells this failure from others."""
    size = oom.requested_bytes
    return OomIdentity(
        backend=oom.backend,
        exception=oom.exception,
        site=oom.site,
        size_class=None if not size else size.bit_length() - 1,
    )


def with_phases(result: TrialResult, phases: tuple[PhasePeak, ...]) -> TrialResult:
    """Return a result with its phases, and with the highest that each figure has in them."""
    return replace(
        result,
        phases=phases,
        allocated_bytes=_highest(one.allocated_bytes for one in phases),
        reserved_bytes=_highest(one.reserved_bytes for one in phases),
        device_bytes=_highest(one.device_bytes for one in phases),
        host_bytes=_highest(one.host_bytes for one in phases),
    )


def _highest(figures: Iterable[int | None]) -> int | None:
    return max((one for one in figures if one is not None), default=None)


def tokens_of(job: Job) -> int:
    """Return the tokens (of vision: images) that one step of the optimizer sees on one card."""
    length = 1 if job.image_size is not None else job.seq_len
    return job.batch * length * job.grad_accum
