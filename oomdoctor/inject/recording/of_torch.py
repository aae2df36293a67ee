"""The parts of a recording that need torch, put together once the program has imported it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from .. import frameworks, interventions
from ..roots import watch_roots
from .arguments import Arguments
from .history import History
from .line import count
from .meter import RecordingMeter
from .roots import RootClasses
from .steps import RecordedSteps

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..agent import Agent
    from ..phases import Phases
    from .failures import OutOfMemory
    from .line import FileLine

Library: TypeAlias = Any
_ENTRIES = 100_000  # of the memory history: some 50 MB of host memory at the most


class Parts:
    """What looks at torch, and at the libraries above it."""

    def __init__(
        self,
        agent: Agent,
        phases: Phases,
        line: FileLine,
        failures: OutOfMemory,
        given: dict[str, object],
    ) -> None:
        """Put the parts together; `given` are the settings of the run."""
        self._agent = agent
        self._phases = phases
        self.meter = RecordingMeter(agent)
        agent.meter = self.meter
        self.history = History(agent, count(given.get("history_entries"), _ENTRIES))
        self.steps = RecordedSteps(agent, phases, self.meter, self.history)
        self._failures = failures
        failures.steps = self.steps
        self._roots = RootClasses(agent)
        self.arguments = Arguments(agent, line)

    def install(self, torch: Library) -> None:
        """Set the hooks in torch, and wait for the libraries above it."""
        agent = self._agent
        agent.guarded(self.meter.own.install)(torch)
        agent.guarded(self.history.install)(torch)
        torch.cuda._lazy_call(agent.guarded(self._card_is_used))
        agent.before_root.append(self.steps.saw_root)
        if agent.settings.hooks:
            agent.guarded(watch_roots)(agent)  # changes have to see every call
            interventions.install(agent)
        else:
            agent.guarded(self._roots.install)(torch)
        frameworks.hook(agent, self._phases, self.steps)
        frameworks.hook_phases(agent, self._phases, torch)

    def stop(self) -> None:
        """Leave torch as it was, but for the observer, which then tells nothing."""
        self._failures.stop()
        self.history.end()
        self.meter.own.remove()
        self._roots.remove()

    def _card_is_used(self) -> None:
        """Observe the allocator and begin the history: the program has made its first context."""
        torch = self._agent.torch
        self._failures.watch_cards(torch)
        self._agent.guarded(self.history.begin)()
        cards = []
        for index in range(torch.cuda.device_count()):
            one = torch.cuda.get_device_properties(index)
            cards.append({"index": index, "name": one.name, "total_bytes": one.total_memory})
        backend = None
        with contextlib.suppress(Exception):
            backend = torch.cuda.memory.get_allocator_backend()
        self._agent.tell(
            "cards",
            cards=cards,
            allocator=backend,
            settings=os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
            or os.environ.get("PYTORCH_ALLOC_CONF"),
            history=self.history.is_on,
        )
