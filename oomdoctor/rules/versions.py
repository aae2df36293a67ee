"""Versions and version ranges of the rule language: '2.3', '>=2.1,<2.4'."""

from __future__ import annotations

import operator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VersionKey: TypeAlias = "tuple[tuple[int, ...], int]"
"""The release without trailing zeros, and where a suffix puts it before or after the release."""

_SUFFIXES = (("dev", -4), ("a", -3), ("b", -2), ("c", -1), ("rc", -1), ("pre", -1), ("post", 1))
_DIGITS = "0123456789"
_RANGE_OPS = (">=", "<=", "==", "!=", ">", "<")

COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@cache
def version_key(text: str) -> VersionKey | None:
    """Return what orders `text` among versions ('2.4.0+cu121', '4.46rc1'), or None.

    Local parts (`+cu121`) do not count; 2.3 equals 2.3.0; pre-releases come before the release.
    """
    public = text.strip().lower().removeprefix("v").partition("+")[0]
    release: list[int] = []
    rest = public
    while rest and rest[0] in _DIGITS:
        digits = rest[: len(rest) - len(rest.lstrip(_DIGITS))]
        release.append(int(digits[:18]))
        rest = rest[len(digits) :]
        if rest[:1] != "." or not rest[1:2].isdecimal():
            break
        rest = rest[1:]
    if not release:
        return None
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    suffix = rest.lstrip(".-_")
    rank = next((place for name, place in _SUFFIXES if suffix.startswith(name)), 0)
    return tuple(release), rank


@cache
def parse_range(text: str) -> tuple[tuple[str, VersionKey], ...] | None:
    """Parse '>=2.1,<2.4' to comparisons that must all hold; None where it is no range."""
    bounds = []
    for part in text.split(","):
        clause = part.strip()
        sign = next((op for op in _RANGE_OPS if clause.startswith(op)), None)
        if sign is None:
            return None
        key = version_key(clause[len(sign) :])
        if key is None:
            return None
        bounds.append((sign, key))
    return tuple(bounds)


def in_range(version: VersionKey, text: str) -> bool:
    """Say whether `version` satisfies every bound of the range `text`."""
    return all(COMPARE[sign](version, bound) for sign, bound in parse_range(text) or ())
