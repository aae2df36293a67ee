"""Ends a process cleanly in the middle of a program: exit code 0, no rank left waiting.

The ranks meet in the store that they share before the first leaves it, the process group is
destroyed, children that a library started (workers of a DataLoader) are ended, and the process
leaves without running what the program wanted to do after its training.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

    from .agent import Agent

Library: TypeAlias = Any
_MEET_SECONDS = 20.0
_LEAVE_SECONDS = 3.0
_DESTROY_SECONDS = 10.0
_LOOK_SECONDS = 0.02
_KEY = "oomdoctor/trial/"


def end_now(agent: Agent, *, seconds: float = _MEET_SECONDS) -> None:
    """End this process; the caller has told what there was to tell."""
    with contextlib.suppress(Exception):
        _leave_the_group(agent, seconds)
    with contextlib.suppress(Exception):
        _end_children()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(0)


def _leave_the_group(agent: Agent, seconds: float) -> None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    rank, world = distributed.get_rank(), distributed.get_world_size()
    store = distributed.distributed_c10d._get_default_store() if world > 1 else None
    if store is not None:
        store.add(_KEY + "ended", 1)
        if not _reaches(store, "ended", world, seconds):
            agent.tell("note", text="not every rank ended after the same step")
    last = threading.Thread(target=distributed.destroy_process_group, daemon=True)
    last.start()
    last.join(_DESTROY_SECONDS)  # of a backend that waits for a rank which is gone
    if store is None:
        return
    if rank == 0:  # it may be the one that keeps the store
        _reaches(store, "left", world - 1, _LEAVE_SECONDS)
    else:
        store.add(_KEY + "left", 1)


def _reaches(store: Library, key: str, count: int, seconds: float) -> bool:
    """Wait until so many have added to a counter; False if some did not within the time."""
    until = time.monotonic() + seconds
    while store.add(_KEY + key, 0) < count:
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _end_children() -> None:
    processes = sys.modules.get("multiprocessing")
    for child in processes.active_children() if processes is not None else ():
        child.kill()
