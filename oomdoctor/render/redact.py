"""Take names of people and machines, addresses and secrets out of a diagnosis before it is shared.

The same name gets the same placeholder everywhere (USER1, HOST1, ADDRESS1, SECRET1), so that a
reader still sees what belongs together. Sample of what is taken out:

    /home/lena/sft/train.py         lena@gpu-box-7:~$        HF_TOKEN=hf_abcdefghijklmnopqrst
    gpu-box-7:4711:4820 [0] NCCL WARN                        10.12.0.7
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from oomdoctor.model.plan import Diagnosis

T = TypeVar("T")

# kind -> patterns; the group `it` is what is replaced
PATTERNS = {
    "SECRET": (
        (
            r"\b(?P<it>hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}"
            r"|AKIA[0-9A-Z]{16}|[0-9a-f]{40})\b"
        ),
        (
            r"(?i)(?:api_?key|token|secret|passw(?:or)?d)[\"']?\s*[=:]\s*[\"']?"
            r"(?P<it>(?=[^\s\"',]{0,200}\d)[^\s\"',]{8,})"
        ),
    ),
    "USER": (
        r"(?:/home/|/Users/|[A-Za-z]:\\+Users\\+)(?P<it>[^/\\\s:\"']+)",
        r"\b(?P<it>[A-Za-z][\w.-]{0,63})@[A-Za-z][\w-]*",
    ),
    "HOST": (
        r"\b[A-Za-z][\w.-]{0,63}@(?P<it>[A-Za-z][\w-]*(?:\.[\w-]+)*)",
        r"^(?P<it>[\w.-]+):\d+:\d+ \[\d+\] ",
    ),
    "ADDRESS": (r"(?<![\d.])(?P<it>\d{1,3}(?:\.\d{1,3}){3})(?![\d.])",),
}


def redacted(diagnosis: Diagnosis) -> Diagnosis:
    """Return the same diagnosis with placeholders in all its texts."""
    return _walk(diagnosis, {})


def _walk(value: T, names: dict[str, str]) -> T:
    """Return a copy of a value of the model in which every text is redacted."""
    if isinstance(value, Enum) or value is None:
        return value
    if isinstance(value, str):
        return cast("T", _text(value, names))
    if isinstance(value, tuple):
        return cast("T", tuple(_walk(part, names) for part in value))
    if isinstance(value, Mapping):
        return cast("T", {key: _walk(part, names) for key, part in value.items()})
    if is_dataclass(value) and not isinstance(value, type):
        changed = {one.name: _walk(getattr(value, one.name), names) for one in fields(value)}
        return cast("T", replace(value, **changed))
    return value


def _text(text: str, names: dict[str, str]) -> str:
    for kind, pattern in _compiled():
        text = pattern.sub(partial(_placed, kind=kind, names=names), text)
    return text


def _placed(found: re.Match[str], *, kind: str, names: dict[str, str]) -> str:
    name = found["it"]
    if re.fullmatch(r"(?:USER|HOST|ADDRESS|SECRET)\d+", name):
        return found[0]
    number = 1 + sum(given.startswith(kind) for given in names.values())
    placeholder = names.setdefault(name, f"{kind}{number}")
    start = found.start("it") - found.start()
    return found[0][:start] + placeholder + found[0][start + len(name) :]


@cache
def _compiled() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(
        (kind, re.compile(pattern, re.MULTILINE))
        for kind, patterns in PATTERNS.items()
        for pattern in patterns
    )
