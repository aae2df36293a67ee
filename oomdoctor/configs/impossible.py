"""Numbers that no job can have: told, so that no default stands in for them unseen.

micro_batch_size: 0  ->  "line 3: micro_batch_size = 0 is not read: train.micro_batch is a ..."
lora_r: -8           ->  impossible.adapter = "lora_r = -8", which lint reports
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import scalars
from oomdoctor.configs.mapping import converter
from oomdoctor.facts.bounds import BOUNDS, HUGE, KINDS
from oomdoctor.model.core import Fact
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from oomdoctor.configs.mapping import Dialect
    from oomdoctor.configs.setting import Plain, Setting

PREFIX = "impossible."
_PROBES = (8, 1, 0.5)
_SHOWN = 40
_NO_NUMBERS = ("nan", "inf", "infinity")
_AROUND = ("float(", "math.", "numpy.", "np.", "torch.", ".", ")", "'", '"')
"""What may stand around them: `.nan` of YAML, `float("nan")` and `math.inf` of scripts."""


class Impossible(NamedTuple):
    """A setting, the fact that it would be, its number, and what it can be."""

    row: Setting
    key: str
    value: float

    @property
    def mistake(self) -> bool:
        """Say whether no program takes the number for anything."""
        return BOUNDS[self.key].is_mistake(self.value)

    @property
    def told(self) -> str:
        """Return the setting as it is written, a long number shortened."""
        return f"{'.'.join(self.row.path)} = {_shown(self.row.value)}"

    @property
    def note(self) -> str:
        """Say that it is not read, and what it can be."""
        words = BOUNDS[self.key].said(self.value)
        return f"line {self.row.quote.line}: {self.told} is not read: {self.key} is {words}"


def impossible(settings: Iterable[Setting], dialect: Dialect) -> tuple[Impossible, ...]:
    """Return each setting whose number its key cannot be."""
    return tuple(found for row in settings for found in _of_row(row, dialect))


def facts_of(found: Sequence[Impossible]) -> Iterator[Fact]:
    """Yield for each kind of quantity the settings that are mistaken, with their places."""
    for kind in KINDS:
        own = [one for one in found if one.mistake and BOUNDS[one.key].kind == kind]
        rows = dict.fromkeys(one.row for one in own)
        told = dict.fromkeys(one.told for one in own)
        if own:
            yield Fact(
                key=PREFIX + kind,
                value=", ".join(told),
                quotes=tuple(row.quote for row in rows),
            )


def _of_row(row: Setting, dialect: Dialect) -> Iterator[Impossible]:
    value = number_in(row.value)
    convert = converter(row.path, dialect) if row.path and value is not None else None
    if convert is None or value is None:
        return
    keys = dict.fromkeys(claim.key for probe in _PROBES for claim in convert(probe))
    for key in keys:
        bound = BOUNDS.get(key)
        if bound is not None and not bound.holds(value):
            yield Impossible(row, key, value)
            return


def _shown(value: object) -> str:
    """Return a value as it is written, the start of a long one."""
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def number_in(value: Plain) -> float | None:
    """Return what a value is as a number, NaN and those of thousands of digits too."""
    if isinstance(value, str):
        word = value.strip().lower()
        bare = word.lstrip("+-")
        for written in _AROUND:
            bare = bare.replace(written, "")
        if bare in _NO_NUMBERS:
            return float(f"{'-' * word.startswith('-')}{bare}")
        if len(bare) > 60 and (bare.isdecimal() or bare.startswith("0x")):
            return -HUGE if word.startswith("-") else HUGE
    if isinstance(value, int) and not isinstance(value, bool):
        return max(-HUGE, min(HUGE, value))
    count = scalars.as_count(value)
    return scalars.as_number(value) if count is None else max(-HUGE, min(HUGE, count))
