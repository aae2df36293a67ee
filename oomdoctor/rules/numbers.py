"""Arithmetic on rounded numbers: each value carries the half width of its rounding."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Rounded(NamedTuple):
    """A number and its slack: the true value lies within `value` +- `slack`."""

    value: float
    slack: float = 0

    @property
    def low(self) -> float:
        """Return the least value it can stand for."""
        return self.value - self.slack

    @property
    def high(self) -> float:
        """Return the greatest value it can stand for."""
        return self.value + self.slack


def calculate(op: str, parts: list[Rounded]) -> Rounded | None:
    """Apply an operator or function; None where the result does not exist (division by zero)."""
    try:
        result = OPERATIONS[op](*parts)
        usable = result is not None and math.isfinite(result.value) and math.isfinite(result.slack)
    except (OverflowError, ZeroDivisionError):
        return None
    return result if usable else None


def _between(value: float, low: float, high: float) -> Rounded:
    return Rounded(value, max(value - low, high - value, 0))


def _add(a: Rounded, b: Rounded) -> Rounded:
    return Rounded(a.value + b.value, a.slack + b.slack)


def _subtract(a: Rounded, b: Rounded) -> Rounded:
    return Rounded(a.value - b.value, a.slack + b.slack)


def _multiply(a: Rounded, b: Rounded) -> Rounded:
    slack = abs(a.value) * b.slack + abs(b.value) * a.slack + a.slack * b.slack
    return Rounded(a.value * b.value, slack)


def _divide(a: Rounded, b: Rounded) -> Rounded | None:
    size = abs(b.value)
    if size <= b.slack:
        return None
    if not a.slack and not b.slack:
        return Rounded(a.value / b.value)
    farthest = (abs(a.value) + a.slack) / (size - b.slack)
    return Rounded(a.value / b.value, farthest - abs(a.value) / size)


def _floor_divide(a: Rounded, b: Rounded) -> Rounded | None:
    quotient = _divide(a, b)
    if quotient is None:
        return None
    whole = a.value // b.value
    if not quotient.slack:
        return Rounded(whole)
    return _between(whole, math.floor(quotient.low) - 1, math.floor(quotient.high) + 1)


def _ceil_to(a: Rounded, step: Rounded) -> Rounded | None:
    """Round up to a multiple of `step`, as allocators do."""
    if step.low <= 0:
        return None
    value = -(-a.value // step.value) * step.value
    if step.slack:
        times = abs(a.value) / step.low + 2
        return Rounded(value, a.slack + step.high + step.slack * times)
    low, high = (-(-edge // step.value) * step.value for edge in (a.low, a.high))
    return _between(value, low, high)


def _least(*parts: Rounded) -> Rounded:
    return _between(
        min(p.value for p in parts), min(p.low for p in parts), min(p.high for p in parts)
    )


def _greatest(*parts: Rounded) -> Rounded:
    return _between(
        max(p.value for p in parts), max(p.low for p in parts), max(p.high for p in parts)
    )


def _size(a: Rounded) -> Rounded:
    return Rounded(abs(a.value), a.slack)


OPERATIONS: Mapping[str, Callable[..., Rounded | None]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "//": _floor_divide,
    "ceil_to": _ceil_to,
    "min": _least,
    "max": _greatest,
    "abs": _size,
}
