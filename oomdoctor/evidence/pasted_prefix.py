"""What collectors and people put before every line, told by comparing the lines.

```
> RuntimeError: CUDA out of memory.                               an answer to a mail, Markdown
    RuntimeError: CUDA out of memory.                             a block that was moved in
  17  RuntimeError: CUDA out of memory.                           cat -n, grep -n
train<TAB>Run tests<TAB>2026-11-30T08:30:45.1Z RuntimeError: ...  a CI service's log
2026-11-30T08:30:45.1+00:00 gpu07 python[42]: RuntimeError: ...   rsyslog, journalctl -o short-iso
2026-11-30 08:30:45 [3] RuntimeError: ...                         a shared prefix behind a stamp
2026-11-30 08:30:45 | ERROR | RuntimeError: ...                   one level for every line
job-worker-3 main RuntimeError: ...                               stern, kubetail
node-3 2026-11-30 08:30:45 RuntimeError: ...                      collectors of a cluster
```
"""

from __future__ import annotations

import itertools
import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.prefixes import LEVELS, Parts, behind, dump_line, split_prefixes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Taker = Callable[[str], Parts | None]

_SHARE = 0.8
_FEW_LINES = 5
_MOST_LINES = 400
_MOST_NAMES = 32


def pasted_prefix(lines: Sequence[str], *, later: Iterable[str] = ()) -> Taker | None:
    """Return what takes off the quote marks, margin, numbers or names that `lines` share.

    `later` are all lines of the input: an indented listing is no margin of a dump far behind it.
    """
    some = lines[:_MOST_LINES]
    if len(some) < 2:
        return None
    return _numbered(some) or _margin(some, later) or _quoted(some) or _named(some)


def behind_stamps(
    lines: Sequence[str], find: Callable[[Sequence[str]], Taker | None]
) -> Taker | None:
    """Return what takes off a stamp with the prefix that `find` sees behind all stamps."""
    some = lines[:_MOST_LINES]
    if len(some) < 2 or not _stamped(some[:_FEW_LINES]) or not _stamped(some):
        return None
    parts = [split_prefixes(line) for line in some]
    inner = find([one.text for one in parts if one.stamp and one.text.strip()])
    inner = inner or _behind_stamp([one.text for one in parts if one.stamp])
    if inner is None:
        return None

    def take(line: str) -> Parts | None:
        outer = split_prefixes(line)
        found = inner(outer.text) if outer.stamp else None
        return None if found is None else behind(outer, found)

    return take


def _stamped(lines: Sequence[str]) -> bool:
    return sum(split_prefixes(line).stamp is not None for line in lines) >= _SHARE * len(lines)


def _margin(lines: Sequence[str], later: Iterable[str]) -> Taker | None:
    """Take off the blanks that all lines start with; frames alone keep the two that are theirs."""
    margins = [line[: len(line) - len(line.lstrip())] for line in lines]
    margin = min(margins, key=len)
    margin = margin if all(one.startswith(margin) for one in margins) else ""
    if margin and any(line.startswith('File "', len(margin)) for line in lines):
        margin = margin[:-2]
    if not margin or any(dump_line().match(line) for line in later if not line.startswith(margin)):
        return None
    return lambda line: (
        Parts(line[len(margin) :], None, "", None) if line.startswith(margin) else None
    )


def _quoted(lines: Sequence[str]) -> Taker | None:
    return _by(_mark()) if _shared(lines, _mark()) else None


def _numbered(lines: Sequence[str]) -> Taker | None:
    """Take off numbers that grow by one from line to line."""
    if not lines[0].lstrip()[:1].isdecimal():
        return None
    found = [match for line in lines if (match := _number().match(line))]
    numbers = [int(match["number"]) for match in found]
    steps = sum(later - one == 1 for one, later in itertools.pairwise(numbers))
    if len(lines) < _FEW_LINES and not any(dump_line().match(x[_end(x) :]) for x in lines):
        return None
    if len(found) < _SHARE * len(lines) or steps < _SHARE * len(lines) - 1 or numbers[0] == 0:
        return None
    return _by(_number())


def _end(line: str) -> int:
    found = _number().match(line)
    return 0 if found is None else found.end()


def _named(lines: Sequence[str]) -> Taker | None:
    for pattern in (_step_of_ci(), _before_stamp(), _container()):
        if len(lines) >= _FEW_LINES and _shared(lines, pattern):
            return _by(pattern)
    return None


def _behind_stamp(lines: Sequence[str]) -> Taker | None:
    for pattern in (_host_and_unit(), _one_level()):
        if lines and _shared(lines, pattern):
            return _by(pattern)
    return None


def _shared(lines: Sequence[str], pattern: re.Pattern[str]) -> bool:
    """Say whether nearly all lines start so, with few names."""
    if pattern.match(lines[0]) is None and len(lines) < _FEW_LINES:
        return False
    names = [found["name"] for line in lines if (found := pattern.match(line))]
    least = len(lines) if len(lines) < _FEW_LINES else _SHARE * len(lines)
    if pattern is _one_level() and (len(set(names)) > 1 or len(lines) < _FEW_LINES):
        return False
    return len(names) >= least and len(set(names)) <= max(1, min(_MOST_NAMES, len(names) // 3))


def _by(pattern: re.Pattern[str]) -> Taker:
    def take(line: str) -> Parts | None:
        found = pattern.match(line)
        if found is None:
            return None
        named = found.groupdict().get("name") or ""
        stream = (
            named
            if named.strip("> ") and not named.endswith("kernel") and named not in LEVELS
            else ""
        )
        return Parts(line[found.end() :], None, stream, None)

    return take


@cache
def _mark() -> re.Pattern[str]:
    return re.compile(r"(?P<name>>(?: ?>)?)(?: |$)")


@cache
def _number() -> re.Pattern[str]:
    return re.compile(r"\s{0,8}(?P<number>[0-9]{1,7})(?::(?![0-9]{2}:)|\t|  )")


@cache
def _step_of_ci() -> re.Pattern[str]:
    return re.compile(r"(?P<name>[^\t]{1,80}\t[^\t]{1,80})\t\ufeff?(?=[0-9]{4}-[0-9]{2}-[0-9]{2}T)")


@cache
def _before_stamp() -> re.Pattern[str]:
    return re.compile(
        r"(?P<name>(?=[\w.\-]{0,60}[0-9])[A-Za-z][\w.\-]{1,60}):? "
        r"(?=\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:)"
    )


@cache
def _container() -> re.Pattern[str]:
    return re.compile(
        r"(?P<name>(?=[\w.\-]{0,80}-[\w.\-]{0,80}[0-9])[a-z][\w.\-]{2,80} [a-z][\w\-]{1,60}) "
    )


@cache
def _host_and_unit() -> re.Pattern[str]:
    return re.compile(
        r"(?P<name>[A-Za-z0-9][\w.\-]{0,60} "
        r"(?:[\w.\-/@]{1,60}(?=\[[0-9]{1,10}\]: )|kernel))(?:\[[0-9]+\])?: "
    )


@cache
def _one_level() -> re.Pattern[str]:
    level = "|".join(LEVELS)
    return re.compile(
        rf"(?:\| )?\[?(?P<name>{level})(?:\]| {{1,8}}[|\-](?= )|:)"
        r"(?! ?\[?[\w/.]{1,80}\.\w{1,3}:)(?: |$)"
    )
