"""Sets the hooks of a trial in a process that has just started."""

from __future__ import annotations

import atexit
import os
import platform
import sys
import time
from typing import TYPE_CHECKING, Any

from . import failures
from .agent import Agent, start_thread
from .imports import Finder
from .line import Line
from .meters import start_ticks
from .phases import Phases
from .settings import read
from .steps import Steps

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

Library: TypeAlias = Any
_HEARTBEAT_SECONDS = 0.5


def start(environment: Mapping[str, str]) -> None:
    """Read what is wanted, and wait for the imports of the program."""
    finder = Finder()
    agent = Agent(read(environment), Line(environment["OOMDOCTOR_TRIAL_SOCKET"]), finder)
    phases = Phases(agent)
    steps = Steps(agent, phases)
    failures.Exceptions(agent)
    os.register_at_fork(after_in_child=agent.line.forget)
    sys.meta_path.insert(0, finder)
    agent.when_imported("torch", lambda torch: _hook_torch(agent, phases, steps, torch))
    from . import frameworks, interventions

    frameworks.hook(agent, phases, steps)
    interventions.install(agent)


def _hook_torch(agent: Agent, phases: Phases, steps: Steps, torch: Library) -> None:
    agent.torch = torch
    if agent.settings.device == "cpu":
        _count_host_memory(agent, torch)
    else:
        agent.guarded(failures.watch_cuda)(agent)
    agent.tell(
        "hello",
        start=start_ticks(),
        parent=os.getppid(),
        versions={"torch": str(torch.__version__), "python": platform.python_version()},
    )
    from . import frameworks, roots

    optimizers = sys.modules["torch.optim.optimizer"]
    optimizers.register_optimizer_step_post_hook(agent.guarded(steps.optimizer_stepped))
    agent.before_root.append(steps.saw_root)
    agent.guarded(roots.watch_roots)(agent)
    frameworks.hook_phases(agent, phases, torch)
    atexit.register(agent.guarded(lambda: _at_exit(agent, phases, steps)))
    start_thread(lambda: _beat(agent, phases), "oomdoctor")


def _count_host_memory(agent: Agent, torch: Library) -> None:
    from .counted import CountedMemory, limit_data

    agent.memory = CountedMemory(
        torch,
        agent.settings.cap_bytes,
        told=agent.guarded(lambda asked, live: failures.tell_counted(agent, asked, live)),
    )
    agent.memory.enter()
    if agent.settings.cap_bytes is not None:
        agent.guarded(limit_data)(agent.settings.cap_bytes)


def _beat(agent: Agent, phases: Phases) -> None:
    """Tell the peaks twice a second; end the process when the lab is gone."""
    figures = agent.guarded(phases.figures)
    while not agent.ending:
        time.sleep(_HEARTBEAT_SECONDS)
        if agent.line.is_closed():
            import signal

            os.kill(os.getpid(), signal.SIGKILL)  # nobody would end it any more
        if not agent.tell("peak", **(figures() or {})):
            return


def _at_exit(agent: Agent, phases: Phases, steps: Steps) -> None:
    """Tell that the program came to its own end; how it ended, its exit code says."""
    if agent.is_ours() and agent.torch is not None:
        phases.close()
        agent.tell("exit", number=steps.number, unmet=steps.unmet())
