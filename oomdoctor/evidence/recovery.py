"""Shortages that the program itself answered: a choice was left out, another way went through.

Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.
Prompt executed in 44.02 seconds                          the tiled way went through

E0304 08:11:44 ... Runtime error during autotuning: out of resource: triton_mm Required: 147456
E0304 08:11:44 ... Ignoring this choice.                  the kernel was not needed

W .../bfc_allocator.cc:291] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.57Gi
B with freed_by_count=0. The caller indicates that this is not a failure         (a cut line)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.evidence.events import fact
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.evidence.events import Event
    from oomdoctor.evidence.haystack import Haystack
    from oomdoctor.evidence.work_lines import WorkLines
    from oomdoctor.model.core import Document

_RETRY = "retrying with"
_DONE = ("prompt executed in",)
_LEFT_OUT = ("ignoring this choice", "ignore this choice", "skipping this choice")
_TRIED = ("during autotuning",)
_NO_FAILURE = ("that this is not a failure",)
_NEAR = 3
_MOST_LINES = 5000
"""So far behind a retry the end of its work is looked for."""


def unanswered(haystack: Haystack, events: Sequence[Event]) -> list[Event]:
    """Return the events that the program did not get over."""
    dropped = {at for at, event in enumerate(events) if _left_out(haystack, event)}
    if haystack.has(_RETRY) and any(map(haystack.has, _DONE)):
        dropped |= {at for at in range(len(events)) if _went_through(haystack, events, at)}
    return [event for at, event in enumerate(events) if at not in dropped]


def outlived(document: Document, event: Event, work: WorkLines) -> Event:
    """Mark a refusal by a quota as caught where work goes on behind it: a cache was given back."""
    if not work.any_between(event.last + 1, min(len(document.lines), event.last + _MOST_LINES)):
        return event
    caught = fact("oom.caught", value=True, quotes=[event.failure.line_quote])
    return event._replace(failure=replace(event.failure, facts=(*event.failure.facts, caught)))


def _left_out(haystack: Haystack, event: Event) -> bool:
    if event.family == "bfc":
        return _says_near(haystack, event, _NO_FAILURE, 1)
    tried = _says_near(haystack, event, _TRIED, 0, before=1)
    return tried or _says_near(haystack, event, _LEFT_OUT, _NEAR)


def _says_near(
    haystack: Haystack, event: Event, words: Sequence[str], reach: int, *, before: int = 0
) -> bool:
    """Say whether the event's lines, or the ones around them, hold one of `words`."""
    if not any(map(haystack.has, words)):
        return False
    end = min(len(haystack.starts), event.last + 1 + reach)
    near = [haystack.lowered(at) for at in range(max(0, event.first - before), end)]
    return any(one in line for line in near for one in words)


def _went_through(haystack: Haystack, events: Sequence[Event], at: int) -> bool:
    """Say whether the retry's work ended before anything else failed."""
    event = events[at]
    if _RETRY not in haystack.lowered(event.last):
        return False
    following = (other.first for other in events[at + 1 :] if other.first > event.last)
    end = min((*following, len(haystack.starts), event.last + _MOST_LINES))
    later = (haystack.lowered(index) for index in range(event.last + 1, end))
    return any(words in line for line in later for words in _DONE)
