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

from oomdoctor.facts.segments import block_bytes
from oomdoctor.record import NamedTuple, dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.snapshot.lives import Lives
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
    lives: Lives, steps: Steps, stacks: Sequence[Stack], peak: int
) -> tuple[Suspect, ...]:
    """Return the suspects, the one with the steepest slope first. `peak` is the event of it."""
    sites: dict[tuple[int, int], Site] = {}
    lasting: dict[Site, list[_Span]] = {}
    at_peak: Counter[Site] = Counter()
    for row, (born, let_go) in enumerate(zip(lives.born, lives.let_go, strict=True)):
        first, behind = bisect_left(steps.ends, born + 1), bisect_right(steps.ends, let_go)
        if behind - first < 2 and not born < peak <= let_go:
            continue
        stack, requested = lives.stacks[row], lives.requested[row]
        size = block_bytes(requested)
        kind = (stack, size if stacks[stack].first is None else 0)
        site = sites.get(kind)
        if site is None:
            site = sites[kind] = site_of(stacks[stack], size)
        if born < peak <= let_go:
            at_peak[site] += size
        if behind - first >= 2:
            lasting.setdefault(site, []).append(_Span(first, behind, size, requested, stack))
    whole = at_peak.total()
    found = []
    for site, spans in lasting.items():
        suspect = _suspect(site, spans, steps.ends, stacks)
        if suspect is not None:
            share = at_peak[site] / whole if whole else 0.0
            found.append(replace(suspect, peak_share=share))
    return tuple(sorted(found, key=lambda one: -one.slope_bytes))


class _Span(NamedTuple):
    """A block that was held at two ends of steps or more: from `first` on, not at `behind`."""

    first: int
    behind: int
    size: int
    requested: int
    stack: int


def _suspect(
    site: Site, spans: Sequence[_Span], ends: Sequence[int], stacks: Sequence[Stack]
) -> Suspect | None:
    """Return what a site holds more of from step to step, None where it does not."""
    blocks, sizes = _series(spans, len(ends))
    if len(ends) > WARM_UP:
        blocks, sizes = blocks[1:], sizes[1:]
    if blocks[-1] - blocks[0] < FEWEST_MORE or not _rises(blocks) or not _rises(sizes):
        return None
    lasting = [one for one in spans if one.behind == len(ends)]
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


def _series(spans: Sequence[_Span], ends: int) -> tuple[list[int], list[int]]:
    """Return blocks and bytes that are held at each end from the second on and the one before."""
    blocks, sizes = [0] * (ends + 1), [0] * (ends + 1)
    for one in spans:
        blocks[one.first + 1] += 1
        sizes[one.first + 1] += one.size
        blocks[one.behind] -= 1
        sizes[one.behind] -= one.size
    return list(accumulate(blocks))[1:-1], list(accumulate(sizes))[1:-1]


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
