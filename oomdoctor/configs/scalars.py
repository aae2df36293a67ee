"""What a written value means: YAML words, numbers, Python literals, sizes, small arithmetic."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re

    from oomdoctor.configs.setting import Plain, Scalar

TRUE = frozenset(("true", "yes", "on", "y"))
FALSE = frozenset(("false", "no", "off", "n"))
NOTHING = frozenset(("null", "none", "~", ""))
MAX_NESTING = 100


@cache
def _number() -> re.Pattern[str]:
    import re

    return re.compile(
        r"[-+]?(?:\d[\d_]*)(?:\.\d*)?(?:[eE][-+]?\d+)?\Z|[-+]?\.\d+(?:[eE][-+]?\d+)?\Z"
    )


def scalar_of(text: str) -> Scalar:
    """Read a plain word as configs mean it: `true`, `null`, `1e-4`, `8`, `4096*2`, else text."""
    word = text.strip()
    low = word.lower()
    if low in NOTHING:
        return None
    if low in TRUE and low != "y":
        return True
    if low in FALSE and low != "n":
        return False
    number = number_of(word)
    return word if number is None else number


def number_of(text: str) -> int | float | None:
    """Read an int or a float, `1_000` and `1e-4` too; None when it is neither."""
    word = text.strip()
    if not word or len(word) > 64 or not _number().match(word):
        return None
    plain = word.replace("_", "")
    if "." in plain or "e" in plain.lower():
        value = float(plain)
        return value if abs(value) < float("inf") else None
    return int(plain)


def unquoted(text: str) -> tuple[str, bool]:
    """Return a word without the quotes around it, and whether it had some."""
    word = text.strip()
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "\"'`":
        return word[1:-1], True
    return word, False


def value_of(text: str) -> Plain:
    """Read a value as someone writes it in a note: quoted, listed in brackets, or plain."""
    word, quoted = unquoted(text)
    if quoted:
        return word
    if word[:1] in "[(" and word[-1:] in "])" and len(word) < 4096:
        parts = [part for part in word[1:-1].split(",") if part.strip()]
        return tuple(scalar_of(unquoted(part)[0]) for part in parts)
    return scalar_of(word)


def as_bool(value: Plain) -> bool | None:
    """Return what a value means as a switch; None when it is no switch."""
    match value:
        case bool():
            return value
        case 0 | 1:
            return bool(value)
        case str():
            low = value.strip().lower()
            return (
                True if low in TRUE or low == "1" else False if low in FALSE or low == "0" else None
            )
        case _:
            return None


def as_count(value: Plain) -> int | None:
    """Return a value as a whole number: 8, `8`, 8.0, `4,096`, `32k`; None when it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else None
    if not isinstance(value, str):
        return None
    word = value.strip().replace(",", "")
    if word[-1:] in ("k", "K") and word[:-1].isdecimal() and len(word) < 8:
        return int(word[:-1]) * 1024
    number = number_of(word)
    return None if number is None else as_count(number)


def as_number(value: Plain) -> float | None:
    """Return a value as a number; None when it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value)
    number = number_of(value) if isinstance(value, str) else None
    return None if number is None else float(number)


def as_text(value: Plain) -> str | None:
    """Return a value as text, a list joined by commas."""
    match value:
        case None:
            return None
        case tuple():
            parts = [as_text(part) for part in value]
            return ",".join(part for part in parts if part) or None
        case bool():
            return "true" if value else "false"
        case _:
            return str(value).strip() or None


def as_strings(value: Plain) -> tuple[str, ...]:
    """Return a value as words: a list's members, or a text split at commas and blanks."""
    if isinstance(value, tuple):
        return tuple(text for part in value if (text := as_text(part)))
    text = as_text(value)
    return tuple(text.replace(",", " ").split()) if text else ()
