"""Reads the peaks of a process: torch's allocator, the counter of host tensors, the kernel's VmHWM.

{"allocated_bytes": 1181116, "reserved_bytes": 20971520, "device_bytes": 536870912,
 "host_bytes": 398458880}
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

    from .agent import Agent

Library: TypeAlias = Any


class Meter:
    """Reads the figures of one process, and begins anew where a phase does.

    A recording has one of its own: it may change nothing that the program can see.
    """

    def __init__(self, agent: Agent) -> None:
        """Know whom to ask: torch is not there yet."""
        self._agent = agent

    def peaks(self) -> dict[str, object]:
        """Return the highest figures since the last `reset`; asks nothing of an unused card.

        With several cards in one process the fullest one is told: it decides what fits.
        """
        agent = self._agent
        found: dict[str, object] = {}
        host = host_peak_bytes()
        if host is not None:
            found["host_bytes"] = host
        if agent.memory is not None:
            found["allocated_bytes"] = agent.memory.peak_bytes
        elif uses_cuda(agent.torch):
            best = max(
                (_of_card(agent.torch, index) for index in range(agent.torch.cuda.device_count())),
                key=lambda one: one["reserved_bytes"],
            )
            found.update(best)
        return found

    def reset(self) -> None:
        """Begin to look for the peaks anew."""
        agent = self._agent
        if agent.memory is not None:
            agent.memory.reset_peak()
        elif uses_cuda(agent.torch):
            for index in range(agent.torch.cuda.device_count()):
                agent.torch.cuda.reset_peak_memory_stats(index)
        with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the kernel forgets the highest resident size of this process

    def in_use_bytes(self) -> int | None:
        """Return what all processes use of the current card; None while a graph is captured."""
        torch = self._agent.torch
        if not uses_cuda(torch) or torch.cuda.is_current_stream_capturing():
            return None
        free, total = torch.cuda.mem_get_info()
        return int(total - free)

    def held_bytes(self) -> int | None:
        """Return what is allocated just now: what is kept from step to step makes it grow."""
        agent = self._agent
        if agent.memory is not None:
            held: int = agent.memory.live_bytes
            return held
        if not uses_cuda(agent.torch):
            return None
        count = agent.torch.cuda.device_count()
        return max(int(agent.torch.cuda.memory_allocated(index)) for index in range(count))

    def settle(self) -> None:
        """Wait for the card, so that seconds and peaks of a step are the step's own."""
        torch = self._agent.torch
        if uses_cuda(torch) and not torch.cuda.is_current_stream_capturing():
            torch.cuda.synchronize()


def uses_cuda(torch: Library) -> bool:
    """Say whether the process has a context on a card, without making one."""
    cuda = getattr(torch, "cuda", None)
    return bool(cuda is not None and cuda.is_initialized() and not cuda._is_in_bad_fork())


def host_peak_bytes() -> int | None:
    """Return the highest resident size of this process as the kernel counts it."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        return None
    return None


def start_ticks() -> int | None:
    """Return when the kernel started this process, in its ticks: tells a recycled pid."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _of_card(torch: Library, index: int) -> dict[str, int]:
    stats = torch.cuda.memory_stats(index)
    return {
        "allocated_bytes": int(stats.get("allocated_bytes.all.peak", 0)),
        "reserved_bytes": int(stats.get("reserved_bytes.all.peak", 0)),
    }
