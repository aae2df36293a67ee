"""Workers for the engine `virtual`: one on a virtual card, one that simulates the same jobs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from oomdoctor.errors import OomdoctorError
from oomdoctor.estimating.engine import NotSimulatedError
from oomdoctor.lab.session import WorkerSession
from oomdoctor.model.estimate import VIRTUAL
from oomdoctor.record import replace
from oomdoctor.virtual.card import card_like, card_of
from oomdoctor.virtual.outside import with_outside
from oomdoctor.virtual.run import virtual_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.lab.protocol import RecordRequest, TraceRequest
    from oomdoctor.memory.stream import Stream
    from oomdoctor.model.job import CardSpec

ROOM_BYTES = 1 << 40
"""What the virtual card has: a peak is asked for, whatever the card that is meant can hold."""
SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


class Sessions(Protocol):
    """Who runs jobs on virtual cards, and who simulates them."""

    @property
    def versions(self) -> Mapping[str, str]:
        """The libraries of the worker that ran a job last."""

    def record(self, request: RecordRequest) -> Stream:
        """Run a job on a card; WorkerError where it fails."""

    def trace(self, request: TraceRequest) -> Stream:
        """Simulate a job; WorkerError where it cannot be."""


class VirtualSessions:
    """Starts each worker when it is asked for; that on the card anew where the card changes."""

    def __init__(self, python: str, say: Callable[[str], None]) -> None:
        """Start nothing yet; `python` is the interpreter with the CUDA build of torch."""
        self.versions: Mapping[str, str] = {}
        self._python = python
        self._say = say
        self._played: tuple[CardSpec, str, bool] | None = None
        self._running: WorkerSession | None = None
        self._simulating: WorkerSession | None = None

    def record(self, request: RecordRequest) -> Stream:
        """Run a job in a worker on such a card, under the settings of the request."""
        wanted = request.card, request.settings, request.is_own_size
        if self._running is None or self._played != wanted:
            if self._running is not None:
                self._running.close()
            environment = environment_on(*wanted[:2], self._python, is_own_size=wanted[2])
            self._running = WorkerSession(
                python=self._python, environment=environment, progress=self._say
            )
            self._played = wanted
        stream = self._running.trace(request)
        if self._running.hello is not None:
            self.versions = dict(self._running.hello.versions)
        return stream

    def trace(self, request: TraceRequest) -> Stream:
        """Simulate a job in another worker, which sees no card."""
        if self._simulating is None:
            self._simulating = WorkerSession(python=self._python, progress=self._say)
        return self._simulating.trace(request)

    def close(self) -> None:
        """Let the workers go."""
        for one in (self._running, self._simulating):
            if one is not None:
                one.close()
        self._running = self._simulating = None


def environment_on(
    card: CardSpec, settings: str, python: str, *, is_own_size: bool = False
) -> dict[str, str | None]:
    """Return what a worker gets on top: a card with room for any peak, or of its own size."""
    check_nvidia(card)
    played = card_like(card)
    played = with_outside(played) if is_own_size else replace(played, total_bytes=ROOM_BYTES)
    try:
        environment = virtual_environment(played, python=python)
    except OomdoctorError as error:
        raise NotSimulatedError(error.message, engine=VIRTUAL, hint=error.hint) from error
    changed = {name: text for name, text in environment.items() if os.environ.get(name) != text}
    # the real cards are hidden already, and what hides one of them would hide this one
    return {
        **changed,
        "CUDA_VISIBLE_DEVICES": None,
        **dict.fromkeys(SETTINGS),
        **({SETTINGS[0]: settings} if settings else {}),
    }


def check_nvidia(card: CardSpec) -> None:
    """Refuse a card of another maker."""
    from oomdoctor.facts.gpus import lookup

    known = lookup(card.name)
    if known and all(card_of(one) is None for one in known):
        raise NotSimulatedError(
            f"only NVIDIA's cards can be played, and {card.name} is none",
            engine=VIRTUAL,
            hint="without --engine the job is simulated, or computed, and judged on this card",
        )
