"""Single points of memory series: a quantity, its bytes, and the step it was printed at."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from oomdoctor.evidence.haystack import MOST_LINES, haystack_of
from oomdoctor.evidence.progress_lines import parse_progress
from oomdoctor.record import NamedTuple
from oomdoctor.units import SIZE_PATTERN, parse_size, size_of, unit_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from oomdoctor.model.core import Document, LogLine

_MIB = 1024**2
_LONGEST = 1000
_DIGITS_OF_BYTES = 8  # a bare number this long counts bytes
_WORDS = ("mem", "alloc", "reserved", "mib /", "rss", "vram")
# The announcement of a failure states figures of another moment.
_NO_SERIES = ("out of memory", "to allocate", "error", "total capacity", "killed process")
_QUANTITIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "host",
        ("rss", "cpu virtual memory", "host mem", "cpu mem", "ram used", "ram:", "system mem"),
    ),
    ("driver", ("driver_allocated", "driver allocated")),
    ("running-max", ("max", "peak")),
    ("reserved", ("reserved", "cached", "mem_cached")),
    ("allocated", ("alloc", "active")),
    ("device", ("used", "usage", "gpu mem", "vram")),
)


_DEEPSPEED = {"ma": "allocated", "ca": "reserved", "max_ma": "running-max", "max_ca": "running-max"}


_LOGGED = {"max mem", "max_mem", "memory"}


class Point(NamedTuple):
    """One value of a series; points of one series share `quantity`, `alike` and `writer`.

    A `counted` point stands on a line that counts steps or batches, of an evaluation as well.
    """

    quantity: str
    bytes: int
    slack_bytes: int
    step: int | None
    alike: str
    writer: str
    at: int
    indexed: bool = False
    counted: bool = False


def points_of(document: Document, end: int) -> Iterator[Point]:
    """Yield the points in the lines before `end`; a step may stand in a bar on the line before."""
    card = ""
    message = ""
    telling = haystack_of(document).lines_with(_WORDS)
    hits = frozenset(telling)
    for at in _looked_at(telling, end):
        line = document.lines[at]
        row = line.text.startswith("|")
        if at not in hits and not row:
            message = line.text
            continue
        text = line.text[:_LONGEST]
        lowered = text.lower()
        index = _card_row().match(text) if row else None
        if index is not None:
            card = index["index"]
        elif not any(word in lowered for word in _WORDS):
            message = text
        elif any(word in lowered for word in _NO_SERIES):
            continue
        elif row:
            yield from _table_row(text, at, card)
            card = ""
        else:
            yield from _named_values(line, text, at, message[:80].lower())


def _looked_at(telling: Sequence[int], end: int) -> Iterable[int]:
    """Return the indexes before `end`, without the middle where thousands tell of memory."""
    count = bisect_left(telling, end)
    if count <= 2 * MOST_LINES:
        return range(end)
    return chain(range(telling[MOST_LINES]), range(telling[count - MOST_LINES], end))


def _table_row(text: str, at: int, card: str) -> Iterator[Point]:
    """Read the `1906MiB / 8111MiB` cell of an nvidia-smi table."""
    found = _used_cell().search(text)
    if found is not None:
        size = size_of(found["used"], _MIB)
        alike = f"card {card} of {found['total']}"
        yield Point("device", size.bytes, size.slack_bytes, None, alike, "", at, bool(card))


def _named_values(line: LogLine, text: str, at: int, message: str) -> Iterator[Point]:
    step = _step_of(line)
    template = "" if step is not None else re.sub(r"\d+(?:\.\d+)?", "#", f"{message}\n{text}"[:300])
    writer = f"{line.stream}/{line.rank}"
    counted = step is not None or parse_progress(line) is not None or bool(_of_all().search(text))
    logged = counted and "eta: " in text
    listed = _listed_unit().search(text) if "memory (" in text else None
    if listed is not None:
        yield from _listed_values(text, listed, Point("", 0, 0, step, "", writer, at))
        return
    seen: set[str] = set()
    for found in _named_value().finditer(text):
        name = found["name"].strip().lower()
        size = _size(found)
        quantity = _quantity(name, text[: found.start()].lower()[-40:])
        if size is None and logged:
            size, quantity = _logged_size(found), "running-max"
        if size is None or quantity is None or quantity in seen:
            continue
        seen.add(quantity)
        alike = name if step is not None else template
        yield Point(quantity, *size, step, alike, writer, at, counted=counted)


def _listed_values(text: str, unit: re.Match[str], blank: Point) -> Iterator[Point]:
    """Read Megatron's `memory (MB) | allocated: 1.0 | max allocated: 2.0`."""
    scale = unit_bytes(unit["unit"]) or _MIB
    for found in _listed_value().finditer(text, unit.end() - 1):
        quantity = _quantity(found["name"], "")
        if quantity is not None:
            size = size_of(found["bare"], scale)
            yield blank._replace(
                quantity=quantity,
                bytes=size.bytes,
                slack_bytes=size.slack_bytes,
                alike=found["name"],
            )


def _quantity(name: str, before: str) -> str | None:
    """Tell what a name counts: `max_mem` is a running maximum whatever follows."""
    told = _told_quantity(name)
    if told is None and "mem" in name:
        return "host" if "cpu" in before or "host" in before else "device"
    return told


@lru_cache(maxsize=256)
def _told_quantity(name: str) -> str | None:
    if name in _DEEPSPEED:
        return _DEEPSPEED[name]
    holds = (quantity for quantity, words in _QUANTITIES if any(word in name for word in words))
    return next(holds, None)


def _size(found: re.Match[str]) -> tuple[int, int] | None:
    if found["size"]:
        size = parse_size(found["size"])
        return None if size is None else (size.bytes, size.slack_bytes)
    scale = unit_bytes(found["unit"] or "")
    if scale is None:
        scale = 1 if found["bare"].isdecimal() and len(found["bare"]) >= _DIGITS_OF_BYTES else None
    if scale is None:
        return None
    size = size_of(found["bare"], scale)
    return size.bytes, size.slack_bytes


def _logged_size(found: re.Match[str]) -> tuple[int, int] | None:
    """Read `max mem: 14655` of torchvision's logger and `memory: 5612` of OpenMMLab's, in MiB.

    Both are peaks.
    """
    if found["unit"] or not found["bare"] or not found["bare"].isdecimal():
        return None
    if found["name"].strip().lower() not in _LOGGED or len(found["bare"]) >= _DIGITS_OF_BYTES:
        return None
    size = size_of(found["bare"], _MIB)
    return size.bytes, size.slack_bytes


def _step_of(line: LogLine) -> int | None:
    """Return the step that a line of memory figures names."""
    after = _after_steps().search(line.text[:_LONGEST])
    if after is not None:
        return int(after[1])
    progress = parse_progress(line)
    if progress is None or progress.evaluates:
        return None
    if progress.within_epoch and progress.epoch is not None and progress.total:
        return int(progress.epoch) * progress.total + (progress.step or 0)
    return progress.step


@cache
def _named_value() -> re.Pattern[str]:
    """Match `memory_allocated 4 GB`, `MA 11.76 GB`, `memory reserved (GB): 6.59`, `rss=3.1G`.

    Also `memory_allocated(): 3221225472`, `mem after step 10 = 4 GiB` and `vram 8.1 GB`.
    """
    return re.compile(
        r"(?<![A-Za-z])(?P<name>(?:[A-Za-z][\w/.]*[ _]){0,3}?"
        r"(?:[A-Za-z_/.]*(?:mem|alloc|reserved|rss|vram)[\w/]*"
        r"(?: used| usage| allocated| reserved)?"
        r"|(?:Max_)?[MC]A|Virtual Memory: {1,3}used))"
        r"(?:\(\))?(?: (?:after|at) [a-z]{1,12} \d+)?"
        r"(?:[\"']? ?(?:\((?P<unit>[KMG]i?B)\))?[\"']?(?: ?[:=|]{1,2} ?| +is +| +)(?:allocated: )?)"
        rf"(?:(?P<size>{SIZE_PATTERN})|(?P<bare>\d+(?:\.\d+)?)(?![\w.]))",
        re.IGNORECASE,
    )


@cache
def _of_all() -> re.Pattern[str]:
    """Match the count of a loop as image loggers print it: `[ 1370/5000]`."""
    return re.compile(r"\[ {0,8}\d{1,9}/\d{1,9}\]")


@cache
def _listed_unit() -> re.Pattern[str]:
    return re.compile(r"memory \((?P<unit>[KMG]i?B)\) ?\|")


@cache
def _listed_value() -> re.Pattern[str]:
    return re.compile(r"\| ?(?P<name>[a-z][a-z ]{1,40}): (?P<bare>\d+(?:\.\d+)?)")


@cache
def _used_cell() -> re.Pattern[str]:
    return re.compile(r"\|\s*(?P<used>\d+)MiB\s*/\s*(?P<total>\d+)MiB\s*\|")


@cache
def _card_row() -> re.Pattern[str]:
    return re.compile(r"\|\s{1,4}(?P<index>\d{1,3})\s{1,4}[A-Za-z][^|]*\|\s*[0-9A-Fa-f]{4,8}:")


@cache
def _after_steps() -> re.Pattern[str]:
    return re.compile(r"after (\d+) (?:iterations?|steps?)\b")
