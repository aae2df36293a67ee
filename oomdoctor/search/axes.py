"""Axes: what a search may change, on which values, and how memory answers to it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

LINEAR = "linear"
QUADRATIC = "quadratic"
DEVICE = "device"
HOST = "host"
_DIGITS = 12  # of a float value: enough for any setting, too few for the error of 3 x 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis and its range; the values tried are the multiples of `step` from `low` to `high`.

    `growth` says how the peak grows with the value (or, on an axis that falls, with what one value
    is of the highest). On an axis that is not `rising`, higher values need less memory. `memory` is
    what runs out: that of the device, or the host's.
    """

    name: str
    low: float
    high: float
    step: float = 1
    growth: str = LINEAR
    rising: bool = True
    integer: bool = True
    memory: str = DEVICE

    def check(self) -> Axis:
        """Return the axis; UsageError where no value can be tried."""
        place = f"axis {self.name}={self.low:g}..{self.high:g}:{self.step:g}"
        if not all(map(math.isfinite, (self.low, self.high, self.step))) or self.step <= 0:
            raise UsageError(f"{place}: the step has to be above 0, the ends plain numbers")
        if self.integer and any(one != int(one) for one in (self.low, self.high, self.step)):
            raise UsageError(
                f"{place}: expected whole numbers", hint=f"{self.name} has no parts of one"
            )
        if self.count < 1:
            raise UsageError(
                f"{place}: no multiple of {self.step:g} lies within the range",
                hint="widen the range or take a smaller step",
            )
        if not self.rising and self.first <= 0:
            raise UsageError(f"{place}: an axis on which memory falls has to begin above 0")
        return self

    @property
    def first(self) -> float:
        """Return the smallest value that may be tried."""
        return self._rounded(math.ceil(self.low / self.step - 1e-9) * self.step)

    @property
    def count(self) -> int:
        """Return how many values there are."""
        steps = math.floor(self.high / self.step + 1e-9) - math.ceil(self.low / self.step - 1e-9)
        return max(0, steps + 1)

    def value(self, position: int) -> int | float:
        """Return the value at a position: 0 needs the least memory, `count` - 1 the most."""
        value = self._rounded(self.at(position))
        return int(value) if self.integer else value

    def at(self, position: float) -> float:
        """Return the value at a position that may lie between two, or beyond the range."""
        steps = position if self.rising else self.count - 1 - position
        return self.first + steps * self.step

    def load(self, value: float) -> float:
        """Return what the peak grows with: the value, or its part of the highest if it falls."""
        if self.rising:
            return value
        return self.at(0) / max(value, self.step * 1e-6)

    def position(self, value: float) -> int:
        """Return the position of a value; UsageError where it is none of the axis."""
        steps = round((value - self.first) / self.step)
        position = steps if self.rising else self.count - 1 - steps
        if not 0 <= position < self.count or abs(self.value(position) - value) > 1e-9 * self.step:
            raise UsageError(f"{value:g} is no value of axis {self.name}")
        return position

    def _rounded(self, value: float) -> float:
        return round(value, _DIGITS)


KNOWN: Mapping[str, Axis] = {
    one.name: one
    for one in (
        Axis(name="batch", low=1, high=512),
        Axis(name="seq", low=512, high=32768, step=64, growth=QUADRATIC),
        Axis(name="lora_rank", low=8, high=1024, step=8),
        Axis(name="images", low=1, high=64),
        Axis(name="resolution", low=224, high=2240, step=28, growth=QUADRATIC),
        Axis(name="new_tokens", low=64, high=32768, step=64),
        Axis(name="workers", low=0, high=64, memory=HOST),
        Axis(name="accumulation", low=1, high=64, rising=False),
        Axis(name="gpu_memory_utilization", low=0.5, high=0.98, step=0.01, integer=False),
    )
}
"""The usual axes, each with its usual range."""
_ALSO = {
    "batch_size": "batch",
    "bs": "batch",
    "micro_batch": "batch",
    "micro_batch_size": "batch",
    "length": "seq",
    "seq_len": "seq",
    "seq_length": "seq",
    "max_len": "seq",
    "max_length": "seq",
    "max_seq_len": "seq",
    "rank": "lora_rank",
    "lora_r": "lora_rank",
    "num_images": "images",
    "image_size": "resolution",
    "max_new_tokens": "new_tokens",
    "num_workers": "workers",
}


def axis_named(
    name: str, low: float | None = None, high: float | None = None, step: float | None = None
) -> Axis:
    """Return the axis of a name over a range; a name nobody knows is taken as linear and rising.

    Without a range a known axis has its usual one. A range with an end or a step that is no whole
    number makes an unknown axis one of fractions.
    """
    usual = KNOWN.get(_ALSO.get(name.lower(), name.lower()))
    if usual is None:
        if low is None or high is None:
            known = ", ".join(KNOWN)
            raise UsageError(
                f"axis {name}: no range is known for it",
                hint=f"give one, as in {name}=1..512; axes with a usual range: {known}",
            )
        numbers = (low, high, step or 1)
        usual = Axis(name=name, low=low, high=high, integer=all(n == int(n) for n in numbers))
    usual_step = usual.step if step is None else step
    return replace(
        usual,
        name=name,
        low=usual.low if low is None else low,
        high=usual.high if high is None else high,
        step=usual_step if step is not None or low is None else _fitting(usual_step, low, high),
    ).check()


def _fitting(step: float, low: float, high: float | None) -> float:
    """Return the usual step, or 1 where the ends that were given are no multiples of it."""
    aligned = all(one is None or one % step == 0 for one in (low, high))
    return step if aligned or step < 1 else 1
