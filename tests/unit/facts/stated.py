"""Make books of stated facts for tests: sizes as text with their rounding, all else as given."""

from __future__ import annotations

from oomdoctor.facts.book import FactBook
from oomdoctor.model.core import Fact, Quote
from oomdoctor.model.enums import Origin
from oomdoctor.units import parse_size

GIB = 1 << 30
MIB = 1 << 20


def fact(key: str, value: bool | float | str, *, origin: Origin = Origin.STATED) -> Fact:
    size = parse_size(value) if isinstance(value, str) else None
    quote = Quote(artifact="a.log", line=1, text=f"{key}={value}")
    if size is None:
        return Fact(key=key, value=value, origin=origin, quotes=(quote,))
    return Fact(key=key, value=size.bytes, slack=size.slack_bytes, origin=origin, quotes=(quote,))


def book(values: dict[str, bool | int | float | str], *, closes: tuple[str, ...] = ()) -> FactBook:
    return FactBook().add([fact(key, value) for key, value in values.items()], closes=closes)
