"""The plain signs that main memory, /dev/shm or the paging file ran out, not the GPU.

    RuntimeError: DataLoader worker (pid 14647) is killed by signal: Killed.
    Out of memory: Killed process 811 (python3) total-vm:48211000kB, anon-rss:11534336kB, ...
    [ERROR] [launch.py:434:sigkill_handler] ['python', 'train.py'] exits with return code = -9
    OSError: The paging file is too small for this operation to complete. (os error 1455)

The texts stand in `host_kill_texts` and `host_refusal_texts`; figures of kernel reports, job
managers and containers are read elsewhere. What neighbouring lines tell is settled here: a kill
behind a time limit or a GPU failure, a full disk that is /dev/shm, a kill that a person asked for.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.events import fact, merged
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.host_kill_texts import KERNEL, KILLS
from oomdoctor.evidence.host_refusal_texts import REFUSALS, WORKERS
from oomdoctor.evidence.launch_signs import SIGNS as LAUNCHERS
from oomdoctor.evidence.signs import event_of, hits
from oomdoctor.model.core import Reading
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.evidence.events import Event
    from oomdoctor.evidence.haystack import Haystack
    from oomdoctor.evidence.signs import Sign
    from oomdoctor.model.core import Document, Failure

SIGNS: tuple[Sign, ...] = (*LAUNCHERS, *WORKERS, *KILLS, *REFUSALS)
ANCHORS = tuple(dict.fromkeys(one for sign in SIGNS for one in sign.literals))
_GPU_FIRST = ("cuda out of memory", "hip out of memory", "tried to allocate", "outofmemoryerror")
_BY_HAND = ("moom_callback", "manual oom execution", "order=-1")
_LOOK_BACK = 14
_WHOLE_INPUT = frozenset({"host.killer", "host.kill_scope"})
"""What a report of the kernel says better than a job manager's line, and outranks."""


@cache
def _shared_memory() -> re.Pattern[str]:
    return re.compile(
        r"dev/shm\b|shared_memory\.py|multiprocessing/(?:heap|synchronize|sharedctypes)\.py"
        r"|torch/multiprocessing/reductions|_share_\w+_\(|_new_shared|SharedMemory\(|/torch_\d+_"
    )


@cache
def _started() -> re.Pattern[str]:
    return re.compile(r"\bos\.fork\(\)|_fork_exec|_posixsubprocess|^\S*sh: fork: |fork failed")


def read(document: Document) -> Reading:
    """Return one failure for each sign that stands apart, and the facts for the whole input.

    What follows from a GPU failure says nothing about the host, so it gives no such facts.
    """
    haystack = haystack_of(document)
    events = merged(event_of(document, hit) for hit in hits(haystack, SIGNS))
    events = [_seen_with_neighbours(document, event) for event in events]
    if any(haystack.has(one) for one in _BY_HAND):
        events = [_by_hand(event, haystack) for event in events]
    gpu_lines = haystack.lines_with(_GPU_FIRST) if events else []
    gpu_first = gpu_lines[0] if gpu_lines else None
    outside = _ended_outside(events)
    failures = [_after(event, gpu_first, outside) for event in events]
    own = [failure for failure in failures if not failure.consequence]
    whole = {one.key: one for failure in reversed(own) for one in failure.facts}
    return Reading(
        facts=tuple(whole.values()), failures=tuple(_without_scope(one) for one in failures)
    )


def _ended_outside(events: Sequence[Event]) -> bool:
    """Say whether a time limit or a cancel ended the job, and nobody speaks of memory."""
    families = {event.family for event in events}
    return "ended" in families and not families & {"oom-kill", "cpu-allocator", "paging"}


def _after(event: Event, gpu_first: int | None, outside: bool) -> Failure:
    """Mark what follows from something else: launchers and job managers kill what is left."""
    behind_gpu = gpu_first is not None and gpu_first <= event.first
    follows = event.family == "sigkill" and (behind_gpu or outside)
    follows = follows or (event.family == "ended" and (behind_gpu or not outside))
    return replace(event.failure, consequence=True) if follows else event.failure


def _without_scope(failure: Failure) -> Failure:
    kept = tuple(one for one in failure.facts if one.key not in _WHOLE_INPUT)
    return failure if len(kept) == len(failure.facts) else replace(failure, facts=kept)


def _seen_with_neighbours(document: Document, event: Event) -> Event:
    """Read what the lines before tell: a full disk that is /dev/shm, a refused fork."""
    if event.family not in ("disk", "cpu-allocator"):
        return event
    before = document.lines[max(0, event.first - _LOOK_BACK) : event.last + 3]
    pattern = _shared_memory() if event.family == "disk" else _started()
    line = next((one for one in before if pattern.search(one.text[:600])), None)
    if line is None:
        return event
    quotes = (event.failure.line_quote, document.quote(line))
    if event.family == "disk":
        full = fact("host.shm_error", value=True, quotes=quotes)
        failure = replace(event.failure, kind="shm", facts=(full,))
        return event._replace(failure=failure, family="shm")
    started = fact("host.fork_failed", value=True, quotes=quotes)
    failure = replace(event.failure, facts=(*event.failure.facts, started))
    return event._replace(failure=failure)


def _by_hand(event: Event, haystack: Haystack) -> Event:
    """Turn a kernel's kill that a person asked for (sysrq f) into an end from outside."""
    lines = haystack.lines_with(_BY_HAND)
    if event.family != "oom-kill" or not any(event.first <= at + 3 for at in lines):
        return event
    kernel = next((one for one in event.failure.facts if one.key == "host.killer"), None)
    if kernel is None or ("host.killer", kernel.value) not in KERNEL.states:
        return event
    facts = (replace(kernel, key="host.ended_outside", value=True),)
    return event._replace(failure=replace(event.failure, kind="other", facts=facts))
