"""Call sites that hold more and more blocks from step to step.

Counted are the blocks that were held at the end of a step and at the end of the step before. So
what each step replaces, such as its batch, is no growth, however long the batches get; nor is what
came once and stayed: weights and optimizer states.

A suspect's number of blocks and bytes must both rise, by the median slope over all pairs of steps
(Theil-Sen), and must still rise in the last third.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from itertools import accumulate
from statistics import median
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple, dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.snapshot.lives import Life
    from oomdoctor.snapshot.stacks import Frame, Stack
    from oomdoctor.snapshot.steps import Steps

MOST_POINTS = 200
FEWEST_MORE = 3
WARM_UP = 6  # with so many steps, the first is left aside
STILL = 0.25
GRAPH_LINES = 2


class Site(NamedTuple):
    """Who asked: the user's own frame, or what stands for it; blocks without a stack by size."""

    frame: Frame | None
    backward: bool
    size: int | None

    @property
    def words(self) -> str:
        """Return the site as one reads it."""
        if self.frame is not None:
            return self.frame.place
        who = "autograd's backward pass" if self.backward else "no recorded stack"
        return who if self.size is None else f"{who}, blocks of {self.size:,} B"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A site whose blocks pile up.

    `blocks` and `live_bytes` are those at the end of each step that were there one step before.
    `stack` is the one that most of them have.
    """

    site: Site
    stack: Stack
    blocks: tuple[int, ...]
    live_bytes: tuple[int, ...]
    slope_bytes: float
    slope_blocks: float
    same_size: int
    same_size_share: float
    peak_share: float

    @property
    def grown_bytes(self) -> int:
        """Return the bytes that it holds at the last step more than at the first."""
        return self.live_bytes[-1] - self.live_bytes[0]


def grow_together(suspects: Sequence[Suspect]) -> bool:
    """Say whether two lines or more of the forward pass pile up, as those of a kept graph do."""
    forward = [one for one in suspects if any(frame.forward for frame in one.stack.frames)]
    return len({one.site for one in forward}) >= GRAPH_LINES


def site_of(stack: Stack, size: int) -> Site:
    """Return the site of a stack."""
    frame = stack.first
    return Site(frame, stack.backward and frame is None, None if frame is not None else size)


def suspects_in(
    lives: Sequence[Life], steps: Steps, stacks: Sequence[Stack], peak: int
) -> tuple[Suspect, ...]:
    """Return the suspects, the one with the steepest slope first. `peak` is the event of it."""
    growing: dict[Site, list[Life]] = {}
    sites: dict[tuple[int, int], Site] = {}
    for one in lives:
        kind = (one.stack, one.size if stacks[one.stack].first is None else 0)
        site = sites.get(kind)
        if site is None:
            site = sites[kind] = site_of(stacks[one.stack], one.size)
        growing.setdefault(site, []).append(one)
    at_peak = sum(one.size for one in lives if one.born < peak <= one.let_go)
    found = []
    for site, blocks in growing.items():
        suspect = _suspect(site, blocks, steps.ends, stacks)
        if suspect is not None:
            held = sum(one.size for one in blocks if one.born < peak <= one.let_go)
            found.append(_with_share(suspect, held / at_peak if at_peak else 0.0))
    return tuple(sorted(found, key=lambda one: -one.slope_bytes))


def _with_share(suspect: Suspect, share: float) -> Suspect:
    from oomdoctor.record import replace

    return replace(suspect, peak_share=share)


def _suspect(
    site: Site, lives: Sequence[Life], ends: Sequence[int], stacks: Sequence[Stack]
) -> Suspect | None:
    """Return what a site holds more of from step to step, None where it does not."""
    blocks, sizes, lasting = _series(lives, ends)
    if len(ends) > WARM_UP:
        blocks, sizes = blocks[1:], sizes[1:]
    if blocks[-1] - blocks[0] < FEWEST_MORE or not _rises(blocks) or not _rises(sizes):
        return None
    common, times = Counter(one.requested for one in lasting).most_common(1)[0]
    return Suspect(
        site=site,
        stack=stacks[Counter(one.stack for one in lasting).most_common(1)[0][0]],
        blocks=tuple(blocks),
        live_bytes=tuple(sizes),
        slope_bytes=slope(sizes),
        slope_blocks=slope(blocks),
        same_size=common,
        same_size_share=times / len(lasting),
        peak_share=0.0,
    )


def _series(lives: Sequence[Life], ends: Sequence[int]) -> tuple[list[int], list[int], list[Life]]:
    """Return blocks and bytes that are held at each end from the second on and at the one before.

    Third are the blocks that outlive all ends.
    """
    blocks, sizes = [0] * (len(ends) + 1), [0] * (len(ends) + 1)
    lasting = []
    for one in lives:
        first, behind = bisect_left(ends, one.born + 1), bisect_right(ends, one.let_go)
        if behind - first < 2:
            continue
        blocks[first + 1] += 1
        sizes[first + 1] += one.size
        blocks[behind] -= 1
        sizes[behind] -= one.size
        if behind == len(ends):
            lasting.append(one)
    return list(accumulate(blocks))[1:-1], list(accumulate(sizes))[1:-1], lasting


def _rises(values: Sequence[int]) -> bool:
    """Say whether values rise, not by a few jumps but all along, and to the end."""
    steady = slope(values)
    if steady <= 0:
        return False
    third = max(1, len(values) // 3)
    late = values[-1] - values[-1 - third]
    return late >= STILL * steady * third


def slope(values: Sequence[int]) -> float:
    """Return the median slope over all pairs, of 200 points at most."""
    count = len(values)
    if count < 2:
        return 0.0
    step = max(1, -(-count // MOST_POINTS))
    points = list(range(0, count, step))
    slopes = [
        (values[after] - values[before]) / (after - before)
        for number, before in enumerate(points)
        for after in points[number + 1 :]
    ]
    return float(median(slopes)) if slopes else 0.0
