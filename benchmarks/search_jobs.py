"""The 400 simulated jobs of `benchmarks/search.py`: what their peak is, and what anyone is told.

A job is an axis of at most 4,096 values, a peak that grows along it (linear for a batch, linear and
quadratic for a length), jumps where the allocator's blocks no longer fit together, a card, and runs
that differ a little. Its largest value that fits is drawn first, even on a logarithmic scale, and
is 0 for some (nothing fits) and the end of the axis for others. Where it is asked for, some jobs
have a floor besides: a phase that needs the same at any value.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from oomdoctor.lab.simulated import FormulaBackend
from oomdoctor.model.trial import FIT, Curve, TrialSpec
from oomdoctor.record import dataclass, replace
from oomdoctor.search.axes import LINEAR, QUADRATIC, Axis

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.trial import TrialResult, Value

JOBS = 400
SEED = 20261130
VALUES = 4096
GIB = 1 << 30
MIB = 1 << 20
CARDS_GIB = (8, 12, 16, 24, 40, 48, 80, 141)
NOISES_MIB = (0, 0, 2, 8, 32)
STEPS_OF_LENGTH = (1, 8, 64, 128)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A peak along an axis; `jumps` are (value, bytes) from which on that much more is needed.

    `floor` is what another phase needs at any value, an optimizer's first step for one.
    """

    constant: float
    linear: float
    quadratic: float
    jumps: tuple[tuple[int, float], ...]
    floor: float

    def at(self, value: float) -> float:
        """Return the peak at a value."""
        jumped = sum(size for start, size in self.jumps if value >= start)
        grown = self.constant + (self.linear + self.quadratic * value) * value + jumped
        return max(grown, self.floor)

    def times(self, scale: float) -> Shape:
        """Return the same peak in another unit."""
        return Shape(
            constant=self.constant * scale,
            linear=self.linear * scale,
            quadratic=self.quadratic * scale,
            jumps=tuple((start, size * scale) for start, size in self.jumps),
            floor=self.floor * scale,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJob:
    """A job: its axis, its peak in bytes by value, and the card's bytes.

    `largest` is what fits without noise, in steps of the axis. `told_bytes` is what a search is
    told of the card: a context that nobody has measured makes it differ.
    """

    name: str
    axis: Axis
    largest: int
    shape: Shape
    cap_bytes: int
    told_bytes: int
    noise_bytes: int
    estimate: Curve
    seed: int

    def peak(self, values: Mapping[str, Value]) -> float:
        """Return the bytes that a trial needs, without noise."""
        return self.bytes_at(float(values[self.axis.name]))

    def bytes_at(self, value: float) -> float:
        """Return the bytes that are needed at a value of the axis."""
        return self.shape.at(value)

    def backend(self) -> FormulaBackend:
        """Return what runs the trials of this job."""
        return FormulaBackend(
            self.peak, cap_bytes=self.cap_bytes, noise_bytes=self.noise_bytes, seed=self.seed
        )

    def trials(self) -> Trials:
        """Return what a search may try."""
        return Trials(self)

    def fits_within(self) -> tuple[int, int]:
        """Return the steps up to which every run fits, and up to which one may."""
        sure = self._last(self.cap_bytes - self.noise_bytes)
        return sure, self._last(self.cap_bytes + self.noise_bytes)

    def _last(self, room: float) -> int:
        low, high = 0, VALUES
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.bytes_at(middle * self.axis.step) <= room
            low, high = (middle, high) if fits else (low, middle - 1)
        return low


class Trials:
    """Trials of a job by steps of its axis, counted; a second run may come out otherwise."""

    def __init__(self, job: SimulatedJob) -> None:
        """Run nothing yet."""
        self._axis = job.axis
        self._backend = job.backend()
        self._runs: dict[int, int] = {}
        self.made: list[tuple[int, bool]] = []

    def run(self, steps: int) -> TrialResult:
        """Run one, whatever comes of it; 0 steps is nothing to run, and fits."""
        repeat = self._runs[steps] = self._runs.get(steps, -1) + 1
        values = {self._axis.name: steps * self._axis.step}
        made = self._backend.run(TrialSpec(values=values, repeat=repeat), lambda _text: None)
        self.made.append((steps, made.outcome == FIT))
        return made

    def fits(self, steps: int) -> bool:
        """Run one and say whether it fits."""
        return self.run(steps).outcome == FIT


def jobs(count: int = JOBS, *, floors: float = 0.0) -> list[SimulatedJob]:
    """Return the jobs, always the same ones; `floors` is the share of them that has a floor."""
    made = [_job(one, random.Random(SEED * 1000 + one)) for one in range(count)]
    draw = random.Random(SEED)
    return [_with_floor(one, draw) if draw.random() < floors else one for one in made]


def _with_floor(job: SimulatedJob, draw: random.Random) -> SimulatedJob:
    """Give a job a phase that takes much of the card at any value."""
    floor = draw.uniform(0.3, 0.95) * job.cap_bytes
    return replace(job, shape=replace(job.shape, floor=floor))


def _largest(draw: random.Random) -> int:
    kind = draw.random()
    if kind < 0.03:
        return 0
    if kind > 0.97:
        return VALUES
    return min(VALUES - 1, math.floor(math.exp(draw.uniform(0, math.log(VALUES)))))


def _job(number: int, draw: random.Random) -> SimulatedJob:
    """Draw a job: first where it ends, then a peak that ends there."""
    largest = _largest(draw)
    length = draw.random() < 0.4
    step = draw.choice(STEPS_OF_LENGTH) if length else 1
    axis = Axis(
        name="seq" if length else "batch",
        low=step,
        high=step * VALUES,
        step=step,
        growth=QUADRATIC if length else LINEAR,
    )
    cap = draw.choice(CARDS_GIB) * GIB - draw.randrange(300, 900) * MIB
    shape = _shape(max(largest, 1) * step, draw, bends=length)
    last, following = (shape.at(one * step) for one in (largest, largest + 1))
    shape = shape.times(cap / (last + (following - last) * draw.uniform(0.03, 0.97)))
    off = draw.uniform(-200, 300) * MIB if draw.random() < 0.3 else 0
    noise = draw.choice(NOISES_MIB) * MIB
    return SimulatedJob(
        name=f"{axis.name}-{number:03d}",
        axis=axis,
        largest=largest,
        shape=shape,
        cap_bytes=cap,
        told_bytes=round(cap + off),
        noise_bytes=noise,
        estimate=_estimate(axis.name, shape, draw),
        seed=number,
    )


def _shape(edge: int, draw: random.Random, *, bends: bool) -> Shape:
    """Draw a peak in parts of that at the edge: what is constant, what grows, and jumps."""
    square = draw.uniform(0, 0.8) if bends else 0.0
    constant = draw.uniform(0.02, 0.85)
    jumps = tuple(
        (math.ceil(edge * draw.uniform(0.05, 1.2)), draw.uniform(0.005, 0.04))
        for _ in range(draw.choice((0, 0, 0, 1, 2)))
    )
    return Shape(
        constant=constant,
        linear=(1 - constant) * (1 - square) / edge,
        quadratic=(1 - constant) * square / edge**2,
        jumps=jumps,
        floor=0.0,
    )


def _estimate(name: str, shape: Shape, draw: random.Random) -> Curve:
    """Draw an estimate: off in what is constant, and more in what grows; no jump, no floor."""
    off, more_off = draw.gauss(0, 0.02), draw.gauss(0, 0.04)
    return Curve(
        axis=name,
        quantity="reserved",
        constant=shape.constant * (1 + off),
        linear=shape.linear * (1 + more_off),
        quadratic=shape.quadratic * (1 + more_off),
    )
