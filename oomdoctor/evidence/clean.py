"""Raw lines to cleaned ones: escapes, progress bars and prefixes go, rank and writer are kept.

```
<ESC>[36m(Worker pid=7)<ESC>[0m   File "a.py", line 1, in f   -> '  File ...' of 'Worker pid=7'
  0%|  | 0/9 [00:00<?]<CR> 11%|█ | 1/9 [00:01<00:08]Traceback -> three lines of one number
```
A line that carries no prefix comes back unchanged.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.common_prefix import common_prefix
from oomdoctor.evidence.data_texts import without_data
from oomdoctor.evidence.prefixes import (
    Parts,
    behind,
    dump_line,
    may_be_tagged,
    place_tag,
    split_prefixes,
)
from oomdoctor.model.core import Document, LogLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from oomdoctor.evidence.source import Source

_INVISIBLE = (0xFEFF, 0x200B, 0x2028, 0x2029, 0x2060)
_DROPPED = (*range(9), 11, 12, *range(14, 32), *range(0x7F, 0xA0), *_INVISIBLE)
_CONTROLS = {**dict.fromkeys(_DROPPED, ""), 0xA0: " "}
_LONG_CHARS = 300
_DIGITS = 40
_PLAIN_STARTS = frozenset(("", *" '{|=-*#.^~abfghjklmopqstuvxyz"))
_CAPITALS = frozenset("ABCDEFGHIJKLMNOPQSTUVWXYZ")
"""What a prefix starts with only where a digit or level follows, or a day: `May  2 10:00:00`."""


def clean(source: Source) -> Document:
    """Clean all lines of `source`."""
    common = common_prefix(source)
    tagged = _TagStripper()
    lines: list[LogLine] = []
    for number, raw in source.lines:
        if not raw:
            lines.append(LogLine(number, raw, raw))
            continue
        if common is None and _is_plain(raw, idle=tagged.idle):
            lines.append(LogLine(number, without_data(raw), raw))
            continue
        before = None if common is None else common(raw)
        segments = tuple(_segments(raw if before is None else before.text))
        own: Parts | None = None
        for at, segment in enumerate(segments):
            bare = common is None or (before is not None and at == 0)
            found = split_prefixes(segment) if bare or common is None else _parts(segment, common)
            own = _of_same_line(found, own)
            parts = behind(before, own)
            text = without_data(tagged.strip(parts))
            shown = raw if len(segments) == 1 or segment in raw else segment
            lines.append(LogLine(number, text, shown, parts.rank, parts.stream, parts.stamp))
    return Document(artifact=source.artifact, lines=tuple(lines), notes=source.notes)


def _is_plain(raw: str, *, idle: bool) -> bool:
    """Say cheaply that a line has nothing to clean; most lines have not."""
    first = raw[:1]
    if first not in _PLAIN_STARTS:
        tag = first in _TAG_LETTERS and (not idle or raw[1:2].isdecimal() or may_be_tagged(raw))
        if tag or first not in _CAPITALS or raw[3:4] == " ":
            return False
    return (
        "[" not in raw
        and "%|" not in raw
        and len(raw) < _LONG_CHARS
        and not raw.startswith('{"')
        and raw.isprintable()
    )


def _of_same_line(parts: Parts, before: Parts | None) -> Parts:
    """Return the parts of a piece with the writer and stamp that its line began with."""
    if before is None or parts.rank is not None or parts.stream:
        return parts
    return Parts(parts.text, before.rank, before.stream, parts.stamp or before.stamp)


def _segments(raw: str) -> Iterable[str]:
    """Take escapes off and split what carriage returns and backspaces wrote over itself."""
    text = raw if len(raw) < _LONG_CHARS else _shorter_numbers(raw)
    if not text.isprintable():
        text = (_escapes().sub("", text) if "\x1b" in text else text).rstrip("\r")
        if "\r" in text or "\x08" in text:
            pieces = (piece.translate(_CONTROLS) for piece in re.split(r"[\r\x08]+", text))
            return [part for piece in pieces if piece.strip() for part in _unglued(piece)]
        text = text.translate(_CONTROLS)
    if "[0m" in text or "^[[" in text or "[m" in text:
        text = _escapes().sub("", text)
    if "%|" in text or "[rank" in text[1:] or text.startswith('{"'):
        return _unglued(text)
    return (text,)


def _shorter_numbers(text: str) -> str:
    """Cut numbers of hundreds of digits, which neither an integer nor a float can take up."""
    return _number().sub(lambda found: found[0][:_DIGITS], text)


def _unglued(text: str) -> Iterator[str]:
    """Part what several writers put on one line: a bar without line feed, another rank's line."""
    if text.startswith('{"') and text.endswith("}"):
        for message in _unwrapped(text):
            yield from (message,) if message == text else _unglued(message)
        return
    if "%|" in text and (not text.endswith("]") or text.count("[") > 1):
        found = _bar_then_text().match(text)
        if found is not None:
            yield found["bar"]
            yield from _unglued(found["rest"])
            return
    if "[rank" in text[1:]:
        yield from _by_rank(text)
        return
    yield text


def _by_rank(text: str) -> Iterator[str]:
    """Part the lines of several ranks; a prefix of the whole line is no line of its own."""
    pieces = [piece for piece in _rank_inside().split(text) if piece]
    if len(pieces) > 1 and not split_prefixes(pieces[0]).text.strip():
        pieces[:2] = ["".join(pieces[:2])]
    yield from pieces


def _unwrapped(text: str) -> Iterator[str]:
    """Return the message lines of a record of a JSON log (docker, structured loggers)."""
    import json

    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    found = (
        [record[key] for key in _MESSAGE_KEYS if isinstance(record.get(key), str)]
        if isinstance(record, dict) and any(key in record for key in _RECORD_KEYS)
        else []
    )
    if not found or not isinstance(record, dict):
        yield text
        return
    prefix = _record_prefix(record)
    for message in found:
        yield from (prefix + line for line in message.rstrip("\n").split("\n"))


def _record_prefix(record: dict[str, object]) -> str:
    """Return the time and rank of a record the way that they are written before a line."""
    times = (record.get(key) for key in _TIME_KEYS)
    time = next(
        (one for one in times if isinstance(one, str) and _plain_stamp().fullmatch(one)), ""
    )
    rank = next((record[key] for key in _RANK_KEYS if type(record.get(key)) is int), None)
    return f"{time} " * bool(time) + (f"[rank{rank}]: " if rank is not None else "")


_TIME_KEYS = ("time", "timestamp", "@timestamp", "ts", "asctime")
_RANK_KEYS = ("rank", "global_rank")
_MESSAGE_KEYS = ("log", "message", "msg", "event", "exc_info", "exception", "stack_trace")
_RECORD_KEYS = ("stream", "time", "timestamp", "ts", "level", "levelname", "severity", "@timestamp")


def _parts(segment: str, common: Callable[[str], Parts | None]) -> Parts:
    before = common(segment)
    if before is None:
        return split_prefixes(segment)
    return behind(before, split_prefixes(before.text))


class _TagStripper:
    """Takes `ERROR [x.py:470]` off the lines of a traceback, and off its lines alone."""

    def __init__(self) -> None:
        self._tags: dict[tuple[str, int | None], str] = {}

    @property
    def idle(self) -> bool:
        """Say whether no tag is being taken off."""
        return not self._tags

    def strip(self, line: Parts) -> str:
        """Return the text of `line` without the tag where it belongs to a traceback."""
        text = line.text
        if text[:1] not in _TAG_STARTS:
            return text
        key = (line.stream, line.rank)
        found = place_tag().match(text) if may_be_tagged(text) else None
        if found is None:
            self._tags.pop(key, None)
            return text
        rest = text[found.end() :]
        tag = found["tag"]
        indented = rest.startswith("  ") and _is_error(tag)
        if indented or dump_line().match(rest):
            self._tags[key] = tag
        elif self._tags.get(key) != tag:
            self._tags.pop(key, None)
            return text
        return rest


_TAG_LETTERS = frozenset("EFCWIDN")
_TAG_STARTS = frozenset("[eicwd") | _TAG_LETTERS


def _is_error(tag: str) -> bool:
    return any(word in tag for word in ("ERROR", "CRITICAL", "FATAL", "[E ", "E "))


@cache
def _escapes() -> re.Pattern[str]:
    """Match terminal escapes, also those whose ESC was lost on the way through a web page."""
    return re.compile(
        r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|\x1b[@-Z\\^_=>78]"
        r"|\x1b[()][A-Z0-9]|\^\[\[[\d;]*[mK]|\[(?:0|1|[34]\d|9\d|[0-2];\d\d|\d\d;\d)?m(?![\]\w:.-]*\])"
    )


@cache
def _number() -> re.Pattern[str]:
    return re.compile(r"\d{100,}")


@cache
def _bar_then_text() -> re.Pattern[str]:
    return re.compile(
        r"(?P<bar>[^|]{0,200}\d{1,3}%\|[^|]{0,400}\| *[\d.]+\w?/[\d.]+\w? \[[^\[\]]{1,200}\])"
        r"(?P<rest> ?[A-Za-z\[(].+)$"
    )


@cache
def _rank_inside() -> re.Pattern[str]:
    return re.compile(r"(?<!^)(?=\[rank\d{1,5}\]: )")


@cache
def _plain_stamp() -> re.Pattern[str]:
    return re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?")
