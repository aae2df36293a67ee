"""The frames that lead to what is held, as a tree: the outermost first, the largest branch first.

Frames that only pass a call on to a module are left out, and a chain of frames without a branch is
one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.snapshot.balance import Balance
    from oomdoctor.snapshot.stacks import Frame, Stack

PASSING = ("torch/nn/modules/module.py", "torch/utils/_contextlib.py")
LEAST_SHARE = 0.01
MOST_NODES = 40


class Node(NamedTuple):
    """Frames that follow one another, how deep they lie in the tree, and what they lead to."""

    depth: int
    frames: tuple[Frame, ...]
    held_bytes: int
    blocks: int


class _Branch:
    """A frame with the frames that it called."""

    __slots__ = ("blocks", "called", "held")

    def __init__(self) -> None:
        self.called: dict[Frame, _Branch] = {}
        self.held = self.blocks = 0


def tree_of(balance: Balance, stacks: Sequence[Stack]) -> tuple[Node, ...]:
    """Return the nodes that lead to at least one hundredth of what is held, 40 at most."""
    root = _Branch()
    for number, share in balance.stacks:
        branch = root
        for frame in reversed(stacks[number].frames):
            if any(one in frame.file for one in PASSING):
                continue
            branch = branch.called.setdefault(frame, _Branch())
            branch.held += share.held_bytes
            branch.blocks += share.blocks
    found: list[Node] = []
    waiting = _largest_last(root, 0, balance.held_bytes)
    while waiting and len(found) < MOST_NODES:
        depth, frame, branch = waiting.pop()
        frames = [frame]
        while len(branch.called) == 1:
            ((frame, only),) = branch.called.items()
            if only.held != branch.held:
                break
            frames.append(frame)
            branch = only
        found.append(Node(depth, tuple(frames), branch.held, branch.blocks))
        waiting += _largest_last(branch, depth + 1, balance.held_bytes)
    return tuple(found)


def _largest_last(branch: _Branch, depth: int, whole: int) -> list[tuple[int, Frame, _Branch]]:
    called = sorted(branch.called.items(), key=lambda one: one[1].held)
    return [(depth, frame, one) for frame, one in called if one.held >= whole * LEAST_SHARE]
