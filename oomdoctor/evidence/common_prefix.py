"""Prefixes that are told by their frequency alone: nearly every line starts with one of a few.

```
3: step 10                         srun -l
[3] step 10                        launchers that count
node-1: step 10                    pdsh, clush
trainer-1  | step 10               docker compose
[pod/job-worker-3/main] step 10    kubectl logs --prefix
```
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.pasted_prefix import behind_stamps, pasted_prefix
from oomdoctor.evidence.prefixes import Parts, behind, dump_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.evidence.source import Source

    Taker = Callable[[str], Parts | None]

_SHARE = 0.8
_NAMED_SHARE = 0.6
_FEW_LINES = 5
_LOOKED_AT = 2000
_NO_NAMES = frozenset(
    ("debug", "info", "warning", "warn", "error", "critical", "fatal", "notice", "note", "file")
)

_NO_PARTS = ("error", "exception", "warning", ".py", ".cpp", ".cc", ".cu", ".h")


def common_prefix(source: Source) -> Taker | None:
    """Return what takes off the prefixes that the lines of `source` share, if they share any."""
    lines = [line for _, line in source.lines[:_LOOKED_AT] if line.strip()]
    taker = pasted_prefix(lines, later=(line for _, line in source.lines))
    if taker is None:
        return _launcher_prefix(lines) or behind_stamps(lines, _launcher_prefix)
    bare = [line if (found := taker(line)) is None else found.text for line in lines]
    bare = [line for line in bare if line.strip()]
    inner = _launcher_prefix(bare) or behind_stamps(bare, _launcher_prefix)
    return taker if inner is None else _one_behind_another(taker, inner)


def _one_behind_another(outer: Taker, inner: Taker) -> Taker:
    def take(line: str) -> Parts | None:
        before = outer(line)
        found = inner(line if before is None else before.text)
        return before if found is None else behind(before, found)

    return take


def _launcher_prefix(lines: Sequence[str]) -> Taker | None:
    if not lines:
        return None
    for pattern in (_srun(), _counted()):
        labels = [found["label"] for line in lines if (found := pattern.match(line))]
        if _is_common(lines, labels, pattern):
            return _by_number(pattern)
    for pattern in (_node(), _pod()):
        names = Counter(found["name"] for line in lines if (found := pattern.match(line)))
        least = 1 if len(lines) < _FEW_LINES else 2
        known = {word: n for word, n in names.items() if n >= least and _is_name(word)}
        if _is_common(lines, [word for word, n in known.items() for _ in range(n)], pattern):
            return _by_name(frozenset(known), pattern)
    return _compose_prefix(lines)


def _is_common(lines: Sequence[str], labels: Sequence[str], pattern: re.Pattern[str]) -> bool:
    """Say whether so many lines start alike that it is no chance.

    Of very few lines all must; a single one must show an exception behind its label. Labels that
    differ from line to line count something else.
    """
    if len(lines) < _FEW_LINES:
        if len(labels) < len(lines) or len(set(labels)) > max(1, len(lines) - 1):
            return False
        return len(lines) > 1 or _shows_dump(lines, pattern)
    if len(labels) < _SHARE * len(lines) or 2 * len(set(labels)) > len(labels):
        return False
    steady = labels == sorted(labels, key=lambda label: (len(label), label))
    several = len(set(labels)) > 1
    return not (pattern is _counted() and steady and several) or _shows_dump(lines, pattern)


def _shows_dump(lines: Sequence[str], pattern: re.Pattern[str]) -> bool:
    found = ((line, pattern.match(line)) for line in lines)
    rests = [line[match.end() :] for line, match in found if match]
    return any(dump_line().match(rest) or rest.startswith("Error ") for rest in rests)


def _is_name(word: str) -> bool:
    lowered = word.lower()
    if lowered in _NO_NAMES or any(part in lowered for part in _NO_PARTS):
        return False
    return _date().match(word) is None


def _compose_prefix(lines: Sequence[str]) -> Taker | None:
    found = [match["name"] for line in lines if (match := _compose().match(line))]
    ended = {match["name"] for line in lines if (match := _compose_exit().search(line))}
    names = Counter(found)
    enough = len(found) >= max(_FEW_LINES, _NAMED_SHARE * len(lines))
    frequent = enough or (len(lines) < _FEW_LINES and _is_common(lines, found, _compose()))
    known = frozenset(name for name in names if frequent or name in ended)
    return _by_name(known, _compose()) if known else None


def _by_number(pattern: re.Pattern[str]) -> Taker:
    def take(line: str) -> Parts | None:
        found = pattern.match(line)
        if found is None:
            return None
        rank = int(found["label"])
        return Parts(line[found.end() :], rank, f"task{rank}", None)

    return take


def _by_name(names: frozenset[str], pattern: re.Pattern[str]) -> Taker:
    def take(line: str) -> Parts | None:
        found = pattern.match(line)
        if found is None or found["name"] not in names:
            return None
        return Parts(line[found.end() :], None, found["name"], None)

    return take


@cache
def _srun() -> re.Pattern[str]:
    return re.compile(r" {0,5}(?P<label>[0-9]{1,5}): ?(?![0-9]{2}:[0-9]{2})")


@cache
def _counted() -> re.Pattern[str]:
    return re.compile(r"\[ {0,3}(?P<label>\d{1,4})\](?:: ?| )")


@cache
def _node() -> re.Pattern[str]:
    return re.compile(r"(?P<name>(?=[\w.\-]*[\d.\-])[A-Za-z\d][\w.\-]{1,60}): ?(?!\d+\])")


@cache
def _pod() -> re.Pattern[str]:
    return re.compile(r"\[(?P<name>(?:pod/)?[A-Za-z](?=[\w.\-/]*[\d/])[\w.\-/]{2,120})\](?:: ?| )")


@cache
def _date() -> re.Pattern[str]:
    return re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}$|(?:rank|default)_?\d")


@cache
def _compose() -> re.Pattern[str]:
    return re.compile(r"(?P<name>[a-z0-9][\w.\-]{0,60}) {1,40}\| ?")


@cache
def _compose_exit() -> re.Pattern[str]:
    return re.compile(r"^(?:container )?(?P<name>[a-z0-9][\w.\-]{0,60}) exited with code \d+")
