"""Facts that a person states on the command line as KEY=VALUE, read by the kind of the fact.

Sample: `--fact oom.requested="1.16 GiB" --fact run.phase=eval --fact gpu.foreign=0B`
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.facts.bounds import BOUNDS
from oomdoctor.facts.registry import spec_of
from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Kind, Origin
from oomdoctor.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.model.core import FactSpec, Value

_YES = ("true", "yes", "on", "1")
_NO = ("false", "no", "off", "0")
_SECONDS = {"": 1, "s": 1, "sec": 1, "ms": 0.001, "min": 60, "m": 60, "h": 3600}


def parse_given(items: Iterable[str]) -> tuple[Fact, ...]:
    """Parse all `KEY=VALUE` strings; a key that is given twice with two values is an error."""
    facts: dict[str, Fact] = {}
    for item in items:
        fact = parse_one(item)
        held = facts.setdefault(fact.key, fact)
        if held.value != fact.value:
            raise UsageError(
                f"--fact {fact.key} is given twice: {held.value!r} and {fact.value!r}",
                hint="give each fact once",
            )
    return tuple(facts.values())


def parse_possible(items: Iterable[str]) -> tuple[Fact, ...]:
    """Parse what a person gives with `--fact`; a number that no job can have is an error."""
    facts = parse_given(items)
    for fact in facts:
        bound, value = BOUNDS.get(fact.key), fact.value
        if bound is not None and not isinstance(value, (bool, str)) and bound.is_mistake(value):
            raise UsageError(
                f"--fact {fact.key}={value} is none that a job can have",
                hint=f"{fact.key} is {bound.said(value)}",
            )
    return facts


def parse_one(item: str) -> Fact:
    """Parse one `KEY=VALUE`; UsageError says what was expected."""
    key, equals, text = item.partition("=")
    key, text = key.strip(), text.strip()
    if not equals or not key:
        raise UsageError(
            f"--fact {item!r} is not KEY=VALUE", hint='for example --fact oom.requested="1.5 GiB"'
        )
    spec = spec_of(key)
    if not text:
        raise UsageError(f"--fact {key} has no value", hint=_expected(spec))
    value, slack = _parse(spec, text)
    return Fact(
        key=key, value=value, origin=Origin.STATED, slack=slack, source="stated with --fact"
    )


def _parse(spec: FactSpec, text: str) -> tuple[Value, float]:
    if spec.kind is Kind.BYTES:
        size = parse_size(text)
        if size is None and text == "0":
            return 0, 0
        if size is None:
            raise _refuse(spec, text)
        return size.bytes, size.slack_bytes
    if spec.kind is Kind.ENUM:
        return _choice(spec, text), 0
    value = _plain(spec, text)
    if value is None:
        raise _refuse(spec, text)
    return value, 0


def _plain(spec: FactSpec, text: str) -> Value | None:
    """Parse the kinds without rounding; None where the text is not of that kind."""
    if spec.kind is Kind.COUNT:
        digits = text.replace(",", "").replace("_", "")
        return int(digits) if re.fullmatch(r"-?\d{1,18}", digits) else None
    if spec.kind is Kind.RATIO:
        found = re.fullmatch(r"(-?\d{1,18}(?:\.\d{1,18})?)\s*(%?)", text)
        return float(found[1]) / (100 if found[2] else 1) if found else None
    if spec.kind is Kind.SECONDS:
        found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?)\s*([a-z]*)", text.lower())
        scale = _SECONDS.get(found[2]) if found else None
        return float(found[1]) * scale if found and scale is not None else None
    if spec.kind is Kind.BOOL:
        word = text.lower()
        return word in _YES if word in _YES + _NO else None
    if spec.kind is Kind.VERSION:
        return text.removeprefix("v") if re.fullmatch(r"v?\d+(\.\d+)*[\w.+-]*", text) else None
    return text


def _choice(spec: FactSpec, text: str) -> str:
    word = text.lower()
    found = next((choice for choice in spec.choices if choice.lower() == word), None)
    if found is not None:
        return found
    from difflib import get_close_matches

    near = get_close_matches(word, spec.choices, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"--fact {spec.key}={text} is none of its choices",
        hint=f"{hint}choices: {', '.join(spec.choices)}",
    )


def _refuse(spec: FactSpec, text: str) -> UsageError:
    return UsageError(
        f"--fact {spec.key}={text}: {text!r} is not {_noun(spec)}", hint=_expected(spec)
    )


def _noun(spec: FactSpec) -> str:
    return {
        Kind.BYTES: "a size with a unit",
        Kind.COUNT: "a whole number",
        Kind.RATIO: "a ratio",
        Kind.SECONDS: "a time",
        Kind.BOOL: "true or false",
        Kind.ENUM: "one of its choices",
        Kind.VERSION: "a version",
    }.get(spec.kind, "a text")


def _expected(spec: FactSpec) -> str:
    examples = {
        Kind.BYTES: "1.5 GiB, 20 MiB or 512 B",
        Kind.COUNT: "8 or 151,936",
        Kind.RATIO: "0.9 or 90%",
        Kind.SECONDS: "30 s or 2 min",
        Kind.BOOL: "true or false",
        Kind.ENUM: ", ".join(spec.choices),
        Kind.VERSION: "2.4.1",
        Kind.TEXT: "any text",
    }
    return f"{spec.key} ({spec.doc.rstrip('.')}) takes {_noun(spec)}: {examples[spec.kind]}"
