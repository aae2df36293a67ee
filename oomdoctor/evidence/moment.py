"""Where in a document the failure is announced, and which of several snapshots belongs to it.

step 10 | 18234MiB / 24576MiB
step 20 | 24301MiB / 24576MiB                                <- last before the failure
RuntimeError: CUDA out of memory. Tried to allocate ...      <- first failure
after restart | 12MiB / 24576MiB
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from oomdoctor.evidence.haystack import haystack_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.model.core import Document

ANNOUNCED = (
    "out of memory",
    "outofmemory",
    "out_of_memory",
    "oom-kill",
    "oom_kill",
    "alloc_failed",
    "resource_exhausted",
    "failed to allocate",
    "busy or unavailable",
)
SPOKEN_OF = ("avoid", "prevent", "to reduce", "if you", "in case of", "may cause", "might cause")

Item = TypeVar("Item")


def failure_index(document: Document) -> int | None:
    """Return the index (in `document.lines`) of the first line that announces a failure."""
    haystack = haystack_of(document)
    for index in haystack.lines_with(ANNOUNCED):
        lower = haystack.lowered(index)
        at = min((lower.find(word) for word in ANNOUNCED if word in lower), default=-1)
        if at >= 0 and not any(word in lower[:at] for word in SPOKEN_OF):
            return index
    return None


def message_states_balance(document: Document) -> bool:
    """Say whether an allocator's message in the document states allocated bytes itself.

    Figures that were printed at another moment must not be mixed with those of the message.
    """
    words = ("already allocated", "allocated by pytorch", "mps allocated:")
    haystack = haystack_of(document)
    return any(haystack.has(word) for word in words)


def at_failure(
    snapshots: Sequence[Item], *, order: Callable[[Item], int], failure: int | None
) -> Item | None:
    """Return the last snapshot before the failure, else the first after it.

    Without a failure the last one is the state that the input ends with.
    """
    if not snapshots:
        return None
    ordered = sorted(snapshots, key=order)
    if failure is None:
        return ordered[-1]
    before = [item for item in ordered if order(item) <= failure]
    return before[-1] if before else ordered[0]


def nearest_to_failure(
    snapshots: Sequence[Item], *, order: Callable[[Item], int], failure: int | None
) -> Item | None:
    """Return the snapshot nearest to the failure: programs print tables when they catch it."""
    if not snapshots:
        return None
    ordered = sorted(snapshots, key=order)
    if failure is None:
        return ordered[-1]
    return min(ordered, key=lambda item: (abs(order(item) - failure), -order(item)))
