"""Sizes as people print them, to and from bytes; the only place that knows "GiB"."""

from __future__ import annotations

import re
from functools import lru_cache

from oomdoctor.record import NamedTuple

_STEP = 1024
_MOST_DIGITS = 60  # no size is longer; an int of thousands of digits can neither be read nor shown
_POWERS = {"b": 0, "byte": 0, "bytes": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}
_PREFIXES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
SIZE_PATTERN = r"\d[\d,]*(?:\.\d+)?\s*(?:[KMGTPE]i?B|[KMGTPE](?![A-Za-z])|bytes?|B)(?![A-Za-z])"
_SIZE = re.compile(
    r"\s*(?P<number>-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)\s*(?P<unit>[A-Za-z]+)\s*\Z"
)


class Size(NamedTuple):
    """A parsed size: bytes, and the half width of the interval its printed digits stand for."""

    bytes: int
    slack_bytes: int


def unit_bytes(unit: str) -> int | None:
    """Return the bytes of one `unit` (B, bytes, KiB, KB, K, MiB, ...), or None if it is no unit.

    Every source that oomdoctor reads (PyTorch, vLLM, DeepSpeed, llama.cpp, TensorFlow, kernel kB)
    counts in powers of 1024 and writes them as KB/MB/GB as often as KiB/MiB/GiB.
    """
    name = unit.lower()
    if name not in ("b", "byte", "bytes"):
        name = name.removesuffix("ib").removesuffix("b")
    power = _POWERS.get(name)
    return None if power is None else _STEP**power


@lru_cache(maxsize=1024)
def parse_size(text: str) -> Size | None:
    """Parse "1.16 GiB", "512 bytes" or "8,519,680 B"; None when `text` is not a size.

    The slack is half a unit of the last printed digit: two decimals of GiB are +-5 MiB.
    """
    found = _SIZE.match(text)
    scale = unit_bytes(found["unit"]) if found else None
    if found is None or scale is None or len(found["number"]) > _MOST_DIGITS:
        return None
    return size_of(found["number"], scale)


def size_of(number: str, scale: int) -> Size:
    """Turn printed digits counted in units of `scale` bytes into a size with its slack."""
    digits = number.replace(",", "")
    decimals = len(digits.partition(".")[2])
    exact = scale == 1 and decimals == 0
    slack = 0 if exact else max(1, round(scale / 10**decimals / 2))
    if decimals == 0:
        return Size(int(digits) * scale, slack)
    whole, _, fraction = digits.partition(".")
    sign = -1 if whole.startswith("-") else 1
    scaled = abs(int(whole)) * scale + round(int(fraction) * scale / 10**decimals)
    return Size(sign * scaled, slack)


def format_size(count: float, *, decimals: int = 2) -> str:
    """Print bytes for people: `1.16 GiB`, `512 B`; negative differences keep their sign."""
    sign, rest = ("-", -count) if count < 0 else ("", count)
    power = 0
    while rest >= _STEP and power < len(_PREFIXES) - 1:
        rest /= _STEP
        power += 1
    if power == 0:
        return f"{sign}{int(rest)} B"
    return f"{sign}{rest:.{decimals}f} {_PREFIXES[power]}"


def format_count(count: int) -> str:
    """Print a count with thousands separators: `151,936`."""
    return f"{count:,}"
