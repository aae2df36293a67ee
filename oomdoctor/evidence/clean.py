"""Raw lines to cleaned ones: escapes, progress bars and prefixes go, rank and writer are kept.

```
<ESC>[36m(Worker pid=7)<ESC>[0m   File "a.py", line 1, in f   -> '  File ...' of 'Worker pid=7'
  0%|  | 0/9 [00:00<?]<CR> 11%|█ | 1/9 [00:01<00:08]Traceback -> three lines of one number
```
A line that carries no prefix comes back unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.prefixes import Parts, may_be_tagged, place_tag, split_prefixes
from oomdoctor.model.core import Document, LogLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from oomdoctor.evidence.source import Source

_DROPPED = (*range(9), 11, 12, *range(14, 32), 0x7F, 0xFEFF, 0x200B, 0x2060)
_CONTROLS = {**dict.fromkeys(_DROPPED, ""), 0xA0: " "}
_LONG_CHARS = 300
_DIGITS = 40
_COMMON_SHARE = 0.8
_COMMON_LINES = 5
_LEVEL_WORDS = frozenset(
    ("debug", "info", "warning", "warn", "error", "critical", "fatal", "notice", "note", "file")
)


def clean(source: Source) -> Document:
    """Clean all lines of `source`."""
    common = _common_prefix(source)
    tagged = _TagStripper()
    lines: list[LogLine] = []
    for number, raw in source.lines:
        segments = tuple(_segments(raw))
        for segment in segments:
            parts = split_prefixes(segment) if common is None else _parts(segment, common)
            text = tagged.strip(parts)
            shown = raw if len(segments) == 1 or segment in raw else segment
            lines.append(LogLine(number, text, shown, parts.rank, parts.stream, parts.stamp))
    return Document(artifact=source.artifact, lines=tuple(lines), notes=source.notes)


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
    if "%|" in text and not text.endswith("]"):
        found = _bar_then_text().match(text)
        if found is not None:
            yield found["bar"]
            yield from _unglued(found["rest"])
            return
    if "[rank" in text[1:]:
        yield from (piece for piece in _rank_inside().split(text) if piece)
        return
    if text.startswith('{"') and text.endswith("}"):
        yield from _unwrapped(text)
        return
    yield text


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
    if not found:
        yield text
    for message in found:
        yield from message.rstrip("\n").split("\n")


_MESSAGE_KEYS = ("log", "message", "msg", "event", "exc_info", "exception", "stack_trace")
_RECORD_KEYS = ("stream", "time", "timestamp", "ts", "level", "levelname", "severity", "@timestamp")


def _parts(segment: str, common: Callable[[str], Parts | None]) -> Parts:
    before = common(segment)
    if before is None:
        return split_prefixes(segment)
    parts = split_prefixes(before.text)
    stream = "/".join(filter(None, (before.stream, parts.stream)))
    rank = parts.rank if parts.rank is not None else before.rank
    return Parts(parts.text, rank, stream, parts.stamp)


class _TagStripper:
    """Takes `ERROR [x.py:470]` off the lines of a traceback, and off its lines alone."""

    def __init__(self) -> None:
        self._tags: dict[tuple[str, int | None], str] = {}

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
        if indented or _dump_line().match(rest):
            self._tags[key] = tag
        elif self._tags.get(key) != tag:
            self._tags.pop(key, None)
            return text
        return rest


_TAG_STARTS = frozenset("[EFCWIDNeicwd")


def _is_error(tag: str) -> bool:
    return any(word in tag for word in ("ERROR", "CRITICAL", "FATAL", "[E ", "E "))


def _common_prefix(source: Source) -> Callable[[str], Parts | None] | None:
    """Recognise `3: ` (srun -l), `node-1: ` (pdsh) and `name  | ` (compose) by their frequency."""
    lines = [line for _, line in source.lines if line.strip()][:2000]
    if not lines:
        return None
    labels = Counter(found["srun"] for line in lines if (found := _srun().match(line)))
    if sum(labels.values()) >= max(_COMMON_LINES, _COMMON_SHARE * len(lines)):
        return _by_srun
    nodes = Counter(found["node"] for line in lines if (found := _node().match(line)))
    for word in list(nodes):
        if word.lower() in _LEVEL_WORDS or "error" in word.lower() or nodes[word] < 2:
            del nodes[word]
    if sum(nodes.values()) >= max(_COMMON_LINES, _COMMON_SHARE * len(lines)):
        return _by_names(frozenset(nodes), _node(), "node")
    return _compose_prefix(lines)


def _compose_prefix(lines: list[str]) -> Callable[[str], Parts | None] | None:
    found = [match["name"] for line in lines if (match := _compose().match(line))]
    ended = {match["name"] for line in lines if (match := _compose_exit().search(line))}
    names = Counter(found)
    frequent = len(found) >= max(_COMMON_LINES, 0.6 * len(lines))
    known = frozenset(name for name in names if frequent or name in ended)
    return _by_names(known, _compose(), "name") if known else None


def _by_srun(line: str) -> Parts | None:
    found = _srun().match(line)
    if found is None:
        return None
    rank = int(found["srun"])
    return Parts(line[found.end() :], rank, f"task{rank}", None)


def _by_names(
    names: frozenset[str], pattern: re.Pattern[str], group: str
) -> Callable[[str], Parts | None]:
    def take(line: str) -> Parts | None:
        found = pattern.match(line)
        if found is None or found[group] not in names:
            return None
        return Parts(line[found.end() :], None, found[group], None)

    return take


@cache
def _escapes() -> re.Pattern[str]:
    """Match terminal escapes, also those whose ESC was lost on the way through a web page."""
    return re.compile(
        r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|\x1b[@-Z\\^_=>78]"
        r"|\x1b[()][A-Z0-9]|\^\[\[[\d;]*[mK]|\[(?:0|1|[34]\d|9\d|[0-2];\d\d|\d\d;\d)?m(?![\]\w]*\])"
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
def _dump_line() -> re.Pattern[str]:
    """Match a line that can only belong to the dump of an exception."""
    return re.compile(
        r'\s*File "|\s*Traceback \(most|\s*(?:During handling of|The above exception)'
        r"|(?:\w+\.){0,6}\w*(?:Error|Exception|Interrupt)(?::|$)"
    )


@cache
def _srun() -> re.Pattern[str]:
    return re.compile(r" {0,5}(?P<srun>\d{1,5}): ?")


@cache
def _node() -> re.Pattern[str]:
    return re.compile(r"(?P<node>(?=[\w.\-]*[\d.\-])[A-Za-z\d][\w.\-]{1,60}): ?(?!\d+\])")


@cache
def _compose() -> re.Pattern[str]:
    return re.compile(r"(?P<name>[a-z0-9][\w.\-]{0,60}) {1,40}\| ?")


@cache
def _compose_exit() -> re.Pattern[str]:
    return re.compile(r"^(?:container )?(?P<name>[a-z0-9][\w.\-]{0,60}) exited with code \d+")
