"""The loop of a training script as its stacks show it: lines that come again in the same order.

    train.py:20 in main      loss = model(batch)      20 22 24 20 22 24 20 …
    train.py:22 in main      loss.backward()
    train.py:24 in main      optimizer.step()

The stacks are followed from the outermost frame inwards as long as one line makes most requests.
The first function whose lines come again holds the loop. A pass begins at the first of them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple
from oomdoctor.snapshot.events import ALLOC

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    outer, numbers = [_outside(one) for one in stacks], device.stacks
    pairs = enumerate(zip(device.events.kinds, numbers, strict=False))
    seen = array("I", (at for at, (kind, number) in pairs if kind == ALLOC and outer[number]))
    requests, depth = seen, 0
    while seen:
        counts = Counter(map(numbers.__getitem__, seen))
        frames = {one: outer[one][depth] for one in counts if len(outer[one]) > depth}
        found = _repeated(seen, numbers, counts, frames)
        if found is not None and _share(requests, found) >= MOST_SHARE:
            return found
        lines: Counter[Frame] = Counter()
        for number, frame in frames.items():
            lines[frame] += counts[number]
        if not lines:
            return None
        line = lines.most_common(1)[0][0]
        within = {number for number, frame in frames.items() if frame == line}
        seen = array("I", (at for at in seen if numbers[at] in within))
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


def _repeated(
    seen: Sequence[int],
    numbers: Sequence[int],
    counts: Mapping[int, int],
    frames: Mapping[int, Frame],
) -> Loop | None:
    """Find lines of one function that come again, each time after another one of them.

    `frames` are the lines of the stacks, by their numbers; `numbers` has the stack of each event.
    """
    functions: Counter[tuple[str, str]] = Counter()
    for number, frame in frames.items():
        functions[frame.file, frame.name] += counts[number]
    if not functions:
        return None
    function = functions.most_common(1)[0][0]
    own = {one: frame for one, frame in frames.items() if (frame.file, frame.name) == function}
    starts: dict[Frame, list[int]] = {}
    before: Frame | None = None
    for at in seen:
        line = own.get(numbers[at])
        if line is not None and line != before:
            starts.setdefault(line, []).append(at)
            before = line
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
