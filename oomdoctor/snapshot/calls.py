"""The calls that lead to what is held, as rows of a flame graph: each lies below its caller.

Calls within libraries that follow one another are one row, and so are those that pass a call on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple
from oomdoctor.snapshot.tree import PASSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.snapshot.balance import Balance
    from oomdoctor.snapshot.stacks import Frame, Stack

LEAST_SHARE = 0.002
MOST_CALLS = 600


class Call(NamedTuple):
    """A row: how deep it lies, where it begins in bytes, its frames, and what they lead to.

    There are no frames where nobody recorded any.
    """

    depth: int
    start: int
    frames: tuple[Frame, ...]
    held_bytes: int
    blocks: int


class _Node:
    """A frame with the frames that it called."""

    __slots__ = ("blocks", "called", "held")

    def __init__(self) -> None:
        self.called: dict[Frame | None, _Node] = {}
        self.held = self.blocks = 0

    def add(self, held: int, blocks: int) -> None:
        """Count what a stack through this frame holds."""
        self.held += held
        self.blocks += blocks


def calls_of(balance: Balance, stacks: Sequence[Stack]) -> tuple[Call, ...]:
    """Return the calls that lead to at least a five hundredth of what is held, 600 at most.

    The widest are kept where there are more.
    """
    root = _Node()
    for number, share in balance.stacks:
        frames: list[Frame | None] = [
            one
            for one in reversed(stacks[number].frames)
            if not any(passing in one.file for passing in PASSING)
        ]
        node = root
        for frame in frames or [None]:
            node = node.called.setdefault(frame, _Node())
            node.add(share.held_bytes, share.blocks)
    found = list(_below(root, 0, 0, balance.held_bytes * LEAST_SHARE))
    if len(found) > MOST_CALLS:
        least = sorted((one.held_bytes for one in found), reverse=True)[MOST_CALLS]
        found = [one for one in found if one.held_bytes > least]
    return tuple(found)


def _below(root: _Node, depth: int, start: int, least: float) -> Iterator[Call]:
    """Yield what a node called, the largest first, each followed by what it called itself."""
    waiting = _called(root, depth, start, least)
    while waiting:
        deep, at, frame, node = waiting.pop()
        frames = [] if frame is None else [frame]
        while frame is not None and frame.library and len(node.called) == 1:
            ((only, below),) = node.called.items()
            if only is None or not only.library or below.held != node.held:
                break
            frame, node = only, below
            frames.append(only)
        yield Call(deep, at, tuple(frames), node.held, node.blocks)
        waiting += _called(node, deep + 1, at, least)


def _called(
    node: _Node, depth: int, start: int, least: float
) -> list[tuple[int, int, Frame | None, _Node]]:
    """Return what a node called, the largest last; each begins where a larger one ends."""
    found = []
    at = start
    for frame, one in sorted(node.called.items(), key=lambda pair: -pair[1].held):
        if one.held >= least:
            found.append((depth, at, frame, one))
        at += one.held
    return found[::-1]
