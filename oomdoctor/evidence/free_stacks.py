"""The stacks of a document that no failure has taken yet, found by their place.

A writer's stacks never overlap, so that the one at or next to a line is found by bisection however
many thousands of failures a log holds.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from oomdoctor.evidence.stacks import Stack
    from oomdoctor.model.core import Document

Writer: TypeAlias = "tuple[str, int | None]"

_TAIL_LINES = 8
_GAP_LINES = 4
_LEAD_LINES = 8
_PEER_LINES = 8
_FAR_LINES = 400


class FreeStacks:
    """Hands each stack out once."""

    def __init__(self, document: Document, found: Sequence[Stack]) -> None:
        """Sort the stacks by writer and place."""
        self._document = document
        self._taken: set[int] = set()
        self._stacks: dict[Writer, list[Stack]] = {}
        for stack in found:
            self._stacks.setdefault((stack.stream, stack.rank), []).append(stack)
        self._ends: dict[Writer, list[int]] = {}
        for writer, own in self._stacks.items():
            own.sort(key=lambda stack: stack.last)
            self._ends[writer] = [stack.last for stack in own]

    def take_ending_in(self, index: int) -> Stack | None:
        """Take the stack that ends in the line `index`, or spans it."""
        writer = self._writer(index)
        own = self._stacks.get(writer, [])
        at = bisect_left(self._ends.get(writer, []), index)
        if at == len(own) or own[at].ending is None or own[at].first > index:
            return None
        return self._take(own[at : at + 1])

    def take_before(self, index: int) -> Stack | None:
        """Take a stack that ended shortly before the line."""
        writer = self._writer(index)
        own = self._stacks.get(writer, [])
        at = bisect_left(self._ends.get(writer, []), index)
        before: list[Stack] = []
        for position in range(at - 1, -1, -1):
            stack = own[position]
            gap = self._lines_between(stack.last, index)
            if gap > _TAIL_LINES:
                break
            if stack.frames and (stack.ending is not None or gap <= _GAP_LINES):
                before.append(stack)
        return self._take(before)

    def take_after(self, index: int) -> Stack | None:
        """Take a stack that starts in the line or shortly after it."""
        writer = self._writer(index)
        own = self._stacks.get(writer, [])
        at = bisect_left(self._ends.get(writer, []), index)
        after: list[Stack] = []
        for position in range(at, len(own)):
            stack = own[position]
            if stack.first > index and self._lines_between(index, stack.first) > _LEAD_LINES:
                break
            headed = stack.first == index and stack.ending is None
            if stack.frames and (stack.first > index or headed):
                after.append(stack)
        return self._take(after)

    def take_of_a_peer(self, index: int) -> Stack | None:
        """Take the stack of another rank that breaks off next to the line of this one.

        Ranks run the same code, and people cut from what they all print at once: the frames of
        one and the message of another stay, at times without the other's prefix.
        """
        rank = self._document.lines[index].rank
        peers = (
            stack
            for (_, other), own in self._stacks.items()
            if other not in (None, rank)
            for stack in own
            if stack.frames and stack.ending is None and _gap(stack, index) <= _PEER_LINES
        )
        return self._take(sorted(peers, key=lambda stack: _gap(stack, index)))

    def _take(self, wanted: Iterable[Stack]) -> Stack | None:
        """Take the first of `wanted` that is still there."""
        for stack in wanted:
            if id(stack) not in self._taken:
                self._taken.add(id(stack))
                return stack
        return None

    def _writer(self, index: int) -> Writer:
        line = self._document.lines[index]
        return line.stream, line.rank

    def _lines_between(self, start: int, end: int) -> int:
        """Count the lines of the same writer between two lines."""
        if end - start > _FAR_LINES:
            return end - start
        own = self._writer(end)
        between = self._document.lines[start + 1 : end]
        return sum(1 for line in between if (line.stream, line.rank) == own)


def _gap(stack: Stack, index: int) -> int:
    """Count the lines from a stack to a line before or behind it."""
    return max(index - stack.last, stack.first - index)
