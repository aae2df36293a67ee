"""The loop of a training script as its stacks show it: lines that come again in the same order.

    train.py:20 in main      loss = model(batch)      20 22 24 20 22 24 20 …
    train.py:22 in main      loss.backward()
    train.py:24 in main      optimizer.step()

The stacks are followed from the outermost frame inwards as long as one line makes most requests.
The first function whose lines come again holds the loop. A pass begins at the first of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple
from oomdoctor.snapshot.events import ALLOC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.snapshot.shapes import Device
    from oomdoctor.snapshot.stacks import Frame, Stack

FEWEST = 4
ALMOST = 0.8
MOST_SHARE = 0.5
WITHIN = (
    "torch/nn/modules/module.py",
    "torch/optim/",
    "torch/autograd/",
    "torch/_tensor.py",
    "torch/serialization.py",
)
WITHIN_NAMES = ("__init__", "from_pretrained", "load_state_dict")


class Loop(NamedTuple):
    """The line at which each pass begins, and the events with which the passes begin."""

    frame: Frame
    starts: tuple[int, ...]

    @property
    def ends(self) -> tuple[int, ...]:
        """Return the first event behind each complete pass."""
        return self.starts[1:]


def loop_of(device: Device, stacks: Sequence[Stack]) -> Loop | None:
    """Return the outermost loop that makes at least half of the requests, None without one."""
    outer = [_outside(one) for one in stacks]
    seen = [
        (at, outer[number])
        for at, (kind, number) in enumerate(zip(device.events.kinds, device.stacks, strict=False))
        if kind == ALLOC and outer[number]
    ]
    requests, depth = [at for at, _ in seen], 0
    while seen:
        lines = [(at, frames[depth]) for at, frames in seen if len(frames) > depth]
        found = _repeated(lines)
        if found is not None and _share(requests, found) >= MOST_SHARE:
            return found
        busiest = Counter(frame for _, frame in lines).most_common(1)
        if not busiest:
            return None
        line = busiest[0][0]
        seen = [
            (at, frames) for at, frames in seen if len(frames) > depth and frames[depth] == line
        ]
        depth += 1
    return None


def _outside(stack: Stack) -> tuple[Frame, ...]:
    """Return the frames around all modules and optimizers, the outermost first."""
    frames: list[Frame] = []
    for one in reversed(stack.frames):
        if one.name in WITHIN_NAMES or any(part in one.file for part in WITHIN):
            break
        frames.append(one)
    return tuple(frames)


def _repeated(lines: Sequence[tuple[int, Frame]]) -> Loop | None:
    """Find lines of one function that come again, each time after another one of them."""
    functions = Counter((frame.file, frame.name) for _, frame in lines)
    if not functions:
        return None
    function = functions.most_common(1)[0][0]
    starts: dict[Frame, list[int]] = {}
    before: Frame | None = None
    for at, frame in lines:
        if (frame.file, frame.name) == function and frame != before:
            starts.setdefault(frame, []).append(at)
            before = frame
    most = max(len(one) for one in starts.values())
    if most <= FEWEST or len(starts) < 2:
        return None
    often = [frame for frame, found in starts.items() if len(found) >= most * ALMOST]
    first = min(often, key=lambda frame: frame.line)
    return Loop(first, tuple(starts[first]))


def _share(requests: Sequence[int], loop: Loop) -> float:
    """Return which share of the requests the complete passes make."""
    first, last = (bisect_left(requests, at) for at in (loop.starts[0], loop.starts[-1]))
    return (last - first) / len(requests)
