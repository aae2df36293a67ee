"""Reads the peaks of a process: torch's allocator, the counter of host tensors, the kernel's VmHWM.

{"allocated_bytes": 1181116, "reserved_bytes": 20971520, "device_bytes": 536870912,
 "host_bytes": 398458880}
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from .agent import Agent

Library: TypeAlias = Any


def peaks(agent: Agent) -> dict[str, int]:
    """Return the highest figures since the last `reset`; asks nothing of a card that is not used.

    With several cards in one process the fullest one is told: it decides what fits.
    """
    found: dict[str, int] = {}
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


def reset(agent: Agent) -> None:
    """Begin to look for the peaks anew."""
    if agent.memory is not None:
        agent.memory.reset_peak()
    elif uses_cuda(agent.torch):
        for index in range(agent.torch.cuda.device_count()):
            agent.torch.cuda.reset_peak_memory_stats(index)
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the kernel forgets the highest resident size of this process


def uses_cuda(torch: Library) -> bool:
    """Say whether the process has a context on a card, without making one."""
    cuda = getattr(torch, "cuda", None)
    return bool(cuda is not None and cuda.is_initialized() and not cuda._is_in_bad_fork())


def in_use_bytes(torch: Library) -> int | None:
    """Return what all processes use of the current card; None while a graph is captured."""
    if not uses_cuda(torch) or torch.cuda.is_current_stream_capturing():
        return None
    free, total = torch.cuda.mem_get_info()
    return int(total - free)


def held_bytes(agent: Agent) -> int | None:
    """Return what is allocated just now: what is kept from step to step makes it grow."""
    if agent.memory is not None:
        held: int = agent.memory.live_bytes
        return held
    if not uses_cuda(agent.torch):
        return None
    count = agent.torch.cuda.device_count()
    return max(int(agent.torch.cuda.memory_allocated(index)) for index in range(count))


def settle(torch: Library) -> None:
    """Wait for the card, so that seconds and peaks of a step are the step's own."""
    if uses_cuda(torch) and not torch.cuda.is_current_stream_capturing():
        torch.cuda.synchronize()


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


def _of_card(torch: Library, index: int) -> dict[str, int]:
    stats = torch.cuda.memory_stats(index)
    return {
        "allocated_bytes": int(stats.get("allocated_bytes.all.peak", 0)),
        "reserved_bytes": int(stats.get("reserved_bytes.all.peak", 0)),
    }
