"""Read raw text by one reader as `read_all` would, and facts as a plain mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.registry import spec_of
from oomdoctor.model.core import Reading
from tests.unit.evidence.documents import document_of, raw_text

if TYPE_CHECKING:
    from types import ModuleType

    from oomdoctor.model.core import Fact, Value

MIB = 1 << 20
GIB = 1 << 30


def read_text(reader: ModuleType, text: str) -> Reading:
    """Read only where an anchor occurs; every fact must be registered and quote the text.

    A count of nothing has nothing to quote.
    """
    lower = text.lower()
    if not any(anchor in lower for anchor in reader.ANCHORS):
        return Reading()
    reading: Reading = reader.read(document_of(text))
    for fact in reading.facts:
        spec_of(fact.key)
        assert fact.quotes or fact.value == 0
        assert all(quote.text in text for quote in fact.quotes)
    return reading


def read_raw(reader: ModuleType, *parts: str) -> Reading:
    return read_text(reader, raw_text(*parts))


def values(reading: Reading, prefix: str = "") -> dict[str, Value]:
    return {fact.key: fact.value for fact in reading.facts if fact.key.startswith(prefix)}


def fact_of(reading: Reading, key: str) -> Fact:
    return next(fact for fact in reading.facts if fact.key == key)
