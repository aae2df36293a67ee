"""The whole recording of a process, begun with its torch, its first failure, or by its own code.

    OOMDOCTOR_RUN=/path/of/the/bundle
    OOMDOCTOR_RUN_SETTINGS={"history_entries": 100000, "snapshots": true, "dumps": 3}

What OOMDOCTOR_TRIAL asks for (an end after so many steps, an evaluation, changes) is done as well.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from .. import failures
from ..agent import Agent, unwrap_all
from ..imports import Finder
from ..meters import start_ticks
from ..settings import read
from .line import FileLine
from .phases import RecordedPhases

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import TypeAlias

Library: TypeAlias = Any


class Recording:
    """The recording of one process."""

    def __init__(
        self, run: str, environment: Mapping[str, str], finder: Finder | None = None
    ) -> None:
        """Hook what does not need torch; a finder is one that is asked already."""
        given = _settings(environment)
        self.finder = finder or Finder()
        self.line = FileLine(run, self._greeting)
        self.agent = Agent(read(environment), self.line, self.finder)
        self._given = given
        self._parts: Library = None
        self._optimizers: Library = None
        self._failures: Library = None
        self._is_over = False
        self.phases = RecordedPhases(self.agent)
        self.exceptions = failures.Exceptions(self.agent)
        self.agent.after_error.append(self._saw_error)
        os.register_at_fork(after_in_child=self.line.forget)
        if self.finder not in sys.meta_path:
            sys.meta_path.insert(0, self.finder)
        self.agent.when_imported("torch", self._torch_is_there)
        atexit.register(self.agent.guarded(self.at_exit))

    def stop(self) -> None:
        """Record no more, and leave every library as it was."""
        if self._is_over:
            return
        self.agent.guarded(self.at_exit)()
        self._is_over = True
        self.exceptions.remove()
        unwrap_all()
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        if self._parts is not None:
            self.agent.guarded(self._parts.stop)()
        if self._optimizers is not None:
            self._optimizers.remove()
        self.line.close()

    def tell_error(self, value: BaseException) -> None:
        """Tell of an exception that ends the recording; what dumps there are to make are made."""
        self.exceptions.tell(value)

    def tell_arguments(self, told: dict[str, object]) -> None:
        """Write what a framework was asked for, where its trainer was made before the recording."""
        if self._parts is not None:
            self._parts.arguments.write(told)

    def _torch_is_there(self, torch: Library) -> None:
        from . import of_torch

        self.agent.torch = torch
        failures_of_memory = self._failures_of_memory()
        self._parts = of_torch.Parts(
            self.agent, self.phases, self.line, failures_of_memory, self._given
        )
        self.agent.tell("torch", version=str(torch.__version__))
        self.agent.guarded(self._parts.install)(torch)
        optimizers = sys.modules["torch.optim.optimizer"]
        self._optimizers = optimizers.register_optimizer_step_post_hook(
            self.agent.guarded(self._parts.steps.optimizer_stepped)
        )

    def _failures_of_memory(self) -> Library:
        """Return what sees failures of memory: made with torch, or with the first failure."""
        if self._failures is None:
            from .dumps import Dumps
            from .failures import OutOfMemory
            from .meter import RecordingMeter

            self.agent.meter = RecordingMeter(self.agent)
            dumps = Dumps(self.agent, self.line, self._given)
            self._failures = OutOfMemory(self.agent, self.phases, dumps)
        return self._failures

    def _saw_error(self, value: BaseException, trace: TracebackType | None) -> None:
        self._failures_of_memory().saw_error(value, trace)

    def _greeting(self) -> dict[str, object] | None:
        """Return what a process tells of itself first."""
        torch = sys.modules.get("torch")
        versions = {"python": sys.version.split()[0]}
        if torch is not None and hasattr(torch, "__version__"):
            versions["torch"] = str(torch.__version__)
        rank, world = self.agent.place()
        return {
            "type": "hello",
            "pid": os.getpid(),
            "parent": os.getppid(),
            "start": start_ticks(),
            "rank": rank,
            "world": world,
            "argv": [*getattr(sys, "argv", ())][:64],
            "executable": sys.executable,
            "versions": versions,
        }

    def at_exit(self) -> None:
        """Tell that the program came to its own end; how it ended, its exit code says."""
        self.exceptions.tell_the_last()
        if self._is_over or not self.line.has_spoken() or not self.agent.is_ours():
            return
        number = 0
        if self._parts is not None:
            self._parts.steps.close()
            self.phases.close()
            number = self._parts.steps.number
        self.agent.tell("exit", number=number)


def _settings(environment: Mapping[str, str]) -> dict[str, object]:
    data = json.loads(environment.get("OOMDOCTOR_RUN_SETTINGS") or "{}")
    return data if isinstance(data, dict) else {}
