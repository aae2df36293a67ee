"""Round figures to stand along the axes of a picture."""

from __future__ import annotations

import math

from oomdoctor.units import format_count

STEPS = (1, 2, 5, 10)
UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def unit_of(top: float) -> tuple[int, str]:
    """Return the unit in which sizes up to `top` are written, by its bytes and its name."""
    return next((one for one in UNITS if top >= one[0]), UNITS[-1])


def size_ticks(top: float, most: int = 5) -> tuple[tuple[float, str], ...]:
    """Return round sizes from zero to `top` with what they are called."""
    size, name = unit_of(top)
    found = [(at * size, f"{at:g} {name}") for at in _round(0.0, top / size, most)]
    return tuple(found)


def count_ticks(left: float, right: float, most: int = 6) -> tuple[tuple[float, str], ...]:
    """Return round figures from `left` to `right` with what they are called."""
    return tuple((at, number_words(at)) for at in _round(left, right, most))


def number_words(value: float) -> str:
    """Print a figure of an axis: `12,000`, `0.25`."""
    return format_count(int(value)) if float(value).is_integer() else f"{value:g}"


def _round(left: float, right: float, most: int) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten, at most `most` steps of them."""
    width = right - left
    if width <= 0 or not math.isfinite(width):
        return [left]
    scale = 10.0 ** math.floor(math.log10(width / most))
    step = scale * next(one for one in STEPS if width / (scale * one) <= most + 1e-9)
    first, last = math.ceil(left / step - 1e-9), math.floor(right / step + 1e-9)
    return [round(at * step, 12) for at in range(first, last + 1)]
