"""Shortages that the program itself answered: a choice was left out, another way went through.

Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.
Prompt executed in 44.02 seconds                          the tiled way went through

E0304 08:11:44 ... Runtime error during autotuning: out of resource: triton_mm Required: 147456
E0304 08:11:44 ... Ignoring this choice.                  the kernel was not needed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.evidence.events import Event
    from oomdoctor.evidence.haystack import Haystack

_RETRY = "retrying with"
_DONE = ("prompt executed in",)
_LEFT_OUT = ("ignoring this choice", "ignore this choice", "skipping this choice")
_NEAR = 3
_MOST_LINES = 5000
"""So far behind a retry the end of its work is looked for."""


def unanswered(haystack: Haystack, events: Sequence[Event]) -> list[Event]:
    """Return the events that the program did not get over."""
    dropped = {at for at, event in enumerate(events) if _left_out(haystack, event)}
    if haystack.has(_RETRY) and any(map(haystack.has, _DONE)):
        dropped |= {at for at in range(len(events)) if _went_through(haystack, events, at)}
    return [event for at, event in enumerate(events) if at not in dropped]


def _left_out(haystack: Haystack, event: Event) -> bool:
    if not any(map(haystack.has, _LEFT_OUT)):
        return False
    end = min(len(haystack.starts), event.last + 1 + _NEAR)
    near = (haystack.lowered(at) for at in range(event.first, end))
    return any(words in line for line in near for words in _LEFT_OUT)


def _went_through(haystack: Haystack, events: Sequence[Event], at: int) -> bool:
    """Say whether the retry's work ended before anything else failed."""
    event = events[at]
    if _RETRY not in haystack.lowered(event.last):
        return False
    following = (other.first for other in events[at + 1 :] if other.first > event.last)
    end = min((*following, len(haystack.starts), event.last + _MOST_LINES))
    later = (haystack.lowered(index) for index in range(event.last + 1, end))
    return any(words in line for line in later for words in _DONE)
