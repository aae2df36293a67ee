"""The simulation: streams of a job traced by the worker, and those of other batches from growth."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from oomdoctor.estimating.growth import Growth, laws_of
from oomdoctor.estimating.peak import bare_peak, peak_of_stream
from oomdoctor.estimating.shapes import Shape, longest, shape_of, with_shape
from oomdoctor.lab.protocol import TraceRequest, encode
from oomdoctor.lab.session import WorkerError
from oomdoctor.memory import bands
from oomdoctor.memory.few_layers import with_few_layers
from oomdoctor.model.estimate import SIMULATE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from oomdoctor.estimating.growth import Key, Law
    from oomdoctor.estimating.peak import Peak
    from oomdoctor.memory.stream import Stream
    from oomdoctor.model.job import CardSpec, Job

WIDER, LONGER = 2, 2
KEPT = 4
CRASHED, HOST = "crashed", "fake host"


class Tracer(Protocol):
    """Who traces: the session with a worker, or a test."""

    def trace(self, request: TraceRequest) -> Stream:
        """Return the stream of a job; WorkerError where it cannot be traced."""
        ...


class Simulation:
    """Traces jobs on one card, each once; `settings` are those of the allocator."""

    name = SIMULATE

    def __init__(
        self,
        tracer: Tracer,
        card: CardSpec,
        *,
        settings: str = "",
        say: Callable[[str], None] | None = None,
    ) -> None:
        """Trace nothing yet."""
        self.card = card
        self.settings = settings
        self._tracer = tracer
        self._say = say or (lambda _: None)
        self._streams: dict[str, Stream] = {}
        self._growths: dict[str, Growth | None] = {}
        self._peaks: dict[int, Peak] = {}
        self._other_peaks: dict[str, Peak] = {}
        self._others: dict[int, Simulation] = {card.capability[0]: self}

    def under(self, settings: str) -> Simulation:
        """Return the same traces under other settings of the allocator."""
        other = Simulation(self._tracer, self.card, settings=settings, say=self._say)
        other._streams, other._growths = self._streams, self._growths
        return other

    def on(self, card: CardSpec) -> Simulation:
        """Return what traces the kernels of a card's generation; this one where it is the same."""
        generation = card.capability[0]
        if generation not in self._others:
            other = Simulation(self._tracer, card, settings=self.settings, say=self._say)
            other._others = self._others
            self._others[generation] = other
        return self._others[generation]

    def end_on(self, job: Job, card: CardSpec) -> str | None:
        """Run nothing: the replay says what fails."""
        del job, card
        return None

    def stream(self, job: Job, *, phases: Sequence[str] = ()) -> Stream:
        """Return the stream of a job, traced now or before."""
        key = json.dumps([encode(job), *phases], sort_keys=True, default=str)
        if key not in self._streams:
            self._streams[key] = self._made(job, phases)
        return self._streams[key]

    def _made(self, job: Job, phases: Sequence[str]) -> Stream:
        return self._traced(TraceRequest(job=job, card=self.card, phases=tuple(phases)))

    def _traced(self, request: TraceRequest) -> Stream:
        """Trace; a worker that crashes over a later job gets one more try in a process anew."""
        try:
            return self._tracer.trace(request)
        except WorkerError as error:
            if error.kind != CRASHED or not self._streams:
                raise
            self._say("the worker crashed, and is started again")
            return self._tracer.trace(request)

    def peak(self, job: Job) -> Peak:
        """Return the peak of a job with all that is known of it."""
        stream = self.stream(job)
        if id(stream) not in self._peaks:
            self._peaks[id(stream)] = self._peak(stream)
        return self._peaks[id(stream)]

    def at(self, job: Job, shape: Shape) -> Peak:
        """Return the peak of another batch of a job: from its growth, else by another trace."""
        key = f"{shape} {json.dumps(encode(job), sort_keys=True, default=str)}"
        if key not in self._other_peaks:
            if len(self._other_peaks) >= KEPT:  # each holds a whole stream
                del self._other_peaks[next(iter(self._other_peaks))]
            self._other_peaks[key] = self._bare(self._other(job, shape))
        return self._other_peaks[key]

    def _other(self, job: Job, shape: Shape) -> Stream:
        if shape == shape_of(job):
            return self.stream(job)
        growth = self.growth(job)
        return self.stream(with_shape(job, shape)) if growth is None else growth.at(shape)

    def checked(self, job: Job, shape: Shape) -> tuple[Peak, float]:
        """Trace another batch, and say by how much its growth would have been off."""
        traced = self._bare(self.stream(with_shape(job, shape)))
        computed = self.at(job, shape)
        return traced, abs(computed.allocated / max(traced.allocated, 1) - 1)

    def growth(self, job: Job) -> Growth | None:
        """Return how a job's allocations grow; None where only whole traces can tell."""
        key = json.dumps(encode(job), sort_keys=True, default=str)
        if key not in self._growths:
            self._growths[key] = self._learned(job)
        return self._growths[key]

    def _learned(self, job: Job) -> Growth | None:
        laws = self.laws(job)
        return None if laws is None else Growth(self.stream(job), shape_of(job), laws)

    def laws(self, job: Job) -> Mapping[Key, Law] | None:
        """Return the law of each allocation, from a few layers; None where they cannot be cut."""
        few = with_few_layers(job)
        if few is None:
            return None
        self._say("tracing a few layers with other batches")
        base = shape_of(job)
        rows = base.rows * WIDER
        length = _other_length(base, longest(job))
        plain = self.stream(few)
        wide = self.stream(with_shape(few, Shape(rows, base.length)))
        long = None if length is None else self.stream(with_shape(few, Shape(base.rows, length)))
        return laws_of(
            plain, wide, long, rows=rows / base.rows, length=(length or 1) / (base.length or 1)
        )

    def _peak(self, stream: Stream) -> Peak:
        return peak_of_stream(
            stream,
            settings=self.settings,
            band=_band(stream),
            versions=self._versions(),
        )

    def _versions(self) -> dict[str, str]:
        """Return the libraries that the worker has."""
        hello = getattr(self._tracer, "hello", None)
        return {} if hello is None else dict(hello.versions)

    def _bare(self, stream: Stream) -> Peak:
        return bare_peak(stream, settings=self.settings, band=_band(stream))


def _band(stream: Stream) -> bands.Band:
    """Return by how much what was traced that way may be off."""
    return bands.PLAIN_SIMULATION if stream.facts.get("engine") == HOST else bands.SIMULATION


def _other_length(base: Shape, most: int) -> int | None:
    """Return another length to trace: twice as long, or half where the model takes no more."""
    if base.length is None:
        return None
    return base.length * LONGER if base.length * LONGER <= most else max(1, base.length // LONGER)
