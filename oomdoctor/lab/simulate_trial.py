"""Trials that are traced and replayed: no card and no memory is used, and none was measured."""

from __future__ import annotations

import time
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

from oomdoctor.lab.job_trial import with_phases
from oomdoctor.lab.job_values import job_of
from oomdoctor.lab.keys import key_of
from oomdoctor.lab.protocol import TraceRequest
from oomdoctor.lab.session import WorkerError
from oomdoctor.memory.stream_balance import own_path
from oomdoctor.memory.stream_replay import replay
from oomdoctor.model.trial import CRASH, FIT, OOM, TIMEOUT, OomIdentity, PhasePeak, TrialResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.memory.stream import Stream
    from oomdoctor.memory.stream_replay import Failed, Replay
    from oomdoctor.model.job import CardSpec
    from oomdoctor.model.trial import TrialSpec

SIMULATE, CUDA = "simulate", "cuda"
_STEPS = 2


class Tracer(Protocol):
    """Who traces: the session with a worker, or a test."""

    def trace(self, request: TraceRequest) -> Stream:
        """Return the stream of a job; WorkerError where it cannot be traced."""
        ...


class SimulateBackend:
    """Traces the job of a trial and replays it on a card of the cap's size.

    One worker serves all trials, since nothing is ever allocated in it. `card` is the one whose
    kernels are traced where a trial names none; `settings` are the allocator's; `outside_bytes` of
    the card are not the allocator's to give (context, other processes).
    """

    name = SIMULATE

    def __init__(
        self, tracer: Tracer, card: CardSpec, *, settings: str = "", outside_bytes: int = 0
    ) -> None:
        """Trace nothing yet."""
        self._tracer = tracer
        self._card = card
        self._settings = settings
        self._outside_bytes = outside_bytes

    def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
        """Trace and replay one trial."""
        job, card = job_of(spec), spec.card or self._card
        began = time.monotonic()
        hear("tracing")
        try:
            stream = self._tracer.trace(TraceRequest(job=job, card=card))
        except WorkerError as error:
            return TrialResult(
                key=key_of(spec),
                values=spec.values,
                backend=self.name,
                outcome=TIMEOUT if error.kind == "timed-out" else CRASH,
                reason=error.message,
                seconds=time.monotonic() - began,
            )
        hear("replaying")
        played = self._replayed(stream, card, spec.cap_bytes)
        return self._result(spec, stream, played, time.monotonic() - began)

    def _replayed(self, stream: Stream, card: CardSpec, cap_bytes: int | None) -> Replay:
        """Replay under the cap, or on the whole card less what others hold of it."""
        room = card.total_bytes - self._outside_bytes
        capacity = room if cap_bytes is None else min(cap_bytes, room)
        return replay(stream, settings=self._settings, capacity_bytes=max(capacity, 0))

    def _result(
        self, spec: TrialSpec, stream: Stream, played: Replay, seconds: float
    ) -> TrialResult:
        failed = played.failed
        phases = tuple(
            PhasePeak(
                name=one.name,
                allocated_bytes=one.allocated_bytes,
                reserved_bytes=one.reserved_bytes,
            )
            for one in played.phases
        )
        made = TrialResult(
            key=key_of(spec),
            values=spec.values,
            backend=self.name,
            outcome=FIT if failed is None else OOM,
            reason="" if failed is None else _reason(failed),
            identity=None if failed is None else _identity(failed),
            requested_bytes=None if failed is None else failed.allocation.size,
            steps=min(_STEPS, sum(one.name.startswith("step") for one in phases))
            - (failed is not None),
            seconds=seconds,
            assumptions=("simulated: traced and replayed, not measured", *stream.assumptions),
        )
        return with_phases(made, phases)


def _reason(failed: Failed) -> str:
    one = failed.allocation
    place = " in ".join(part for part in (one.operator, own_path(one.module)) if part)
    return f"{one.size:,} bytes cannot be had ({one.phase}: {place})"


def _identity(failed: Failed) -> OomIdentity:
    one = failed.allocation
    site = own_path(one.module) or one.operator
    return OomIdentity(
        backend=CUDA,
        exception="OutOfMemoryError",
        site=f"{PurePath(site).name}" if site else None,
        size_class=one.size.bit_length() - 1,
    )
