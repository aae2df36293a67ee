"""Prefixes that launchers, loggers and containers put before a line, taken apart.

```
[rank3]:   File "train.py", line 3, in <module>         torchrun
(VllmWorker rank=3 pid=1090) ERROR 01-02 10:00:00 [executor.py:470] Traceback ...
(WorkerDict pid=123, ip=10.0.0.1) text                  Ray
[1,3]<stderr>:text        [default3]:text               mpirun, torchrun --tee
[1,mpirank:3,algo-1]<stderr>:text                       SageMaker
[09/17/2025-21:24:19] [TRT-LLM] [RANK 2] [E] text       TensorRT-LLM
Jan  2 10:00:00.123 text                                loggers without a year
Jan  2 10:00:00 node python[77]: text                   syslog, journald
2024-01-02T10:00:00.123456789Z stderr F text            Kubernetes
[2024-01-02 10:00:00,123] [ERROR] [x.py:12:f] text      DeepSpeed
E0102 10:00:00.123 1234 file.cc:12] text                glog
```
Ranks, writers and time stamps are taken off. A level with a place in the source stays, since it
says who speaks (`[ERROR] [x.py:12:f] text`), but before the lines of a traceback it goes too.
"""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.record import NamedTuple


class Parts(NamedTuple):
    """A line without its prefixes: the rest, the rank and writer they named, the time stamp."""

    text: str
    rank: int | None
    stream: str
    stamp: str | None


class _Step(NamedTuple):
    """What one prefix gave; `keep` is text of the prefix that stays in front of the rest."""

    end: int
    keep: str = ""
    rank: int | None = None
    stream: str = ""
    stamp: str | None = None


_ROUNDS = 6
_DATE = (
    r"(?:\d{4}[-/.]\d\d[-/.]\d\d|\d\d/\d\d/\d{2,4}|\d\d-\d\d(?:-\d{4})?|\d\d/\d\d"
    r"|(?:[A-Z][a-z]{2},? )?[A-Z][a-z]{2} [ \d]\d(?: \d{4})?)"
)
_TIME = r"\d{1,2}:\d\d:\d\d(?:[.,:]\d{1,9})?(?: [AP]M)?"
_ZONE = r"(?:Z| ?[+-]\d\d:?\d\d| UTC| [A-Z]{3,4}(?= \d{4}))?"
_STAMP = rf"(?:{_DATE}(?:[T _]{{1,2}}|-))?{_TIME}{_ZONE}(?: \d{{4}}(?=\]))?"
LEVELS = (
    *("DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "CRITICAL", "FATAL"),
    *("debug", "info", "warning", "error", "critical"),
)
_LEVEL = rf"(?:{'|'.join(LEVELS)})"


def split_prefixes(line: str) -> Parts:
    """Take the prefixes off `line`; a line without any comes back as it is."""
    text, rank, stamp = line, None, None
    streams: list[str] = []
    for _ in range(_ROUNDS):
        step = _next(text)
        if step is None:
            break
        text = step.keep + text[step.end :]
        rank = step.rank if step.rank is not None else rank
        stamp = stamp or step.stamp
        if step.stream:
            streams.append(step.stream)
        if step.keep:
            break
    return Parts(text, rank, "/".join(streams), stamp)


def behind(outer: Parts | None, inner: Parts) -> Parts:
    """Return the parts of what stood behind an outer prefix, with the writer and stamp of both."""
    if outer is None:
        return inner
    told = (outer.stream, inner.stream if inner.stream != outer.stream else "")
    rank = inner.rank if inner.rank is not None else outer.rank
    return Parts(inner.text, rank, "/".join(filter(None, told)), inner.stamp or outer.stamp)


def _next(text: str) -> _Step | None:
    """Find the one prefix that `text` starts with."""
    first = text[:1]
    if first == "[":
        return _bracket(text)
    if first == "(":
        return _writer(text)
    if first.isdecimal():
        return _kubernetes(text) or _stamp(text)
    if first.isupper() or first in "<>":
        return _glog(text) or _levelled(text) or _named_rank(text) or _syslog(text)
    return _named_rank(text) if first == "r" else None


def _bracket(text: str) -> _Step | None:
    second = text[1:2]
    found = _rank_bracket().match(text) if second.isdecimal() or second in "RrdT" else None
    if found is not None:
        number = int(found["rank"] or found["default"] or found["mpi"] or 0)
        return _Step(found.end(), rank=number, stream=f"rank{number}")
    if not (second.isdecimal() or second.isupper() or second.isspace()):
        return None
    found = _stamp_bracket().match(text)
    if found is not None:
        return _Step(found.end(), stamp=found["stamp"])
    found = _inner_stamp().match(text)
    if found is not None:
        head = found["head"] + " " if found["head"] else ""
        return _Step(found.end(), keep=f"[{head}", stamp=found["stamp"])
    return None


def _writer(text: str) -> _Step | None:
    found = _writer_pattern().match(text)
    if found is None:
        return None
    worker = re.search(r"(?:\brank=|_TP|_EP(?=\d+ ))(\d+)", found["who"])
    several = len(re.findall(r"_[DPTE]P\d+", found["who"])) > 1
    rank = int(worker[1]) if worker and not several else None
    return _Step(found.end(), rank=rank, stream=found["who"])


def _stamp(text: str) -> _Step | None:
    found = _stamp_pattern().match(text)
    return None if found is None else _Step(found.end(), stamp=found["stamp"])


def _kubernetes(text: str) -> _Step | None:
    found = _kubernetes_pattern().match(text)
    return None if found is None else _Step(found.end(), stamp=found["stamp"])


def _glog(text: str) -> _Step | None:
    if not text[1:2].isdecimal():
        return None
    found = _glog_pattern().match(text)
    if found is None:
        return None
    return _Step(found.end(), keep=f"{found['level']} ", stamp=found["stamp"])


def _levelled(text: str) -> _Step | None:
    if not text.startswith(LEVELS):
        return None
    found = _levelled_pattern().match(text)
    if found is None:
        return None
    return _Step(found.end(), keep=found["level"] + " ", stamp=found["stamp"])


def _named_rank(text: str) -> _Step | None:
    if not text.startswith(("Rank", "rank")):
        return None
    found = _named_rank_pattern().match(text)
    if found is None:
        return None
    number = int(found["rank"])
    return _Step(found.end(), rank=number, stream=f"rank{number}")


def _syslog(text: str) -> _Step | None:
    if text[3:4] != " " or text[6:7] != " ":  # `Jan  2 10:00:00`
        return None
    found = _syslog_pattern().match(text)
    if found is None:
        return _stamp(text)
    who = "" if found["who"].startswith("kernel") else found["who"]
    return _Step(found.end(), stream=who, stamp=found["stamp"])


@cache
def _rank_bracket() -> re.Pattern[str]:
    return re.compile(
        r"(?:\[TRT-LLM\] ?)?\[(?:(?:[Rr]ank|RANK)[ :_]?(?P<rank>\d{1,5})\]:? ?"
        r"|default(?P<default>\d{1,5})\]:|\d{1,5},(?:mpirank:)?(?P<mpi>\d{1,5})(?:,[\w.\-]{1,60})?\]<std(?:out|err|diag)>:)"
    )


@cache
def _stamp_bracket() -> re.Pattern[str]:
    kernel = r"\s{0,8}\d{1,9}\.\d{3,9}"
    return re.compile(
        rf"\[(?P<stamp>{_STAMP}|{kernel})\](?:\[ *[TC]\d+\])?(?::(?= ))?(?! *,)(?:[ ](?:-[ ])?)?"
    )


@cache
def _inner_stamp() -> re.Pattern[str]:
    """Match a stamp that shares its bracket with more: `[W102 10:00:00.1 file.cpp:1]`."""
    return re.compile(rf"\[(?P<head>[DIWEF](?=\d{{3,4}} )|)(?P<stamp>(?:\d{{3,4}} )?{_STAMP}) ")


@cache
def _writer_pattern() -> re.Pattern[str]:
    return re.compile(
        r"\((?P<who>(?:[\w.:<>\-]+(?:\([^()]{0,80}\))? )?(?:rank=\d+ )?pid=\d+|raylet|autoscaler"
        r"|head|scheduler)(?:, ip=[\w.:]+)?\) ?"
    )


@cache
def _stamp_pattern() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<stamp>{_STAMP})(?![\w.<,])(?: ?[|] ?(?![^\n]*[|+]\s*$)|: ?| - |\] ?| |$)"
        r"(?:\[pid \d+\] ?)?"
    )


@cache
def _kubernetes_pattern() -> re.Pattern[str]:
    return re.compile(r"(?P<stamp>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-][\d:]+)) std(?:out|err) [FP] ?")


@cache
def _glog_pattern() -> re.Pattern[str]:
    return re.compile(
        r"(?P<level>[DIWEF])(?P<stamp>(?:\d{4})?\d{4} \d\d:\d\d:\d\d[.,]\d+)\s+(?:\d+ )?"
        r"(?=[\w./\-]+:\d+\])"
    )


@cache
def _levelled_pattern() -> re.Pattern[str]:
    """Match a level before a stamp: `INFO 12-01 10:00:00 [x.py:12] text`, `ERROR:<stamp>:`."""
    return re.compile(
        rf"(?P<level>{_LEVEL}):?(?:\s{{1,8}}|(?<=:))(?P<stamp>{_STAMP})(?![\w.<,])[:,\]]?[ ]?"
    )


@cache
def _named_rank_pattern() -> re.Pattern[str]:
    return re.compile(r"[Rr]ank ?(?P<rank>\d{1,5}): ")


@cache
def _syslog_pattern() -> re.Pattern[str]:
    return re.compile(
        r"(?P<stamp>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?) [\w.\-]+ "
        r"(?P<who>[\w.\-/@]{1,60}(?:\[\d+\])?): (?:\[ *\d+\.\d{3,9}\] )?"
    )


def may_be_tagged(text: str) -> bool:
    """Say cheaply whether `place_tag` could match."""
    return text.startswith(("[", *LEVELS)) or (text[:1] in "EFCW" and text[1:2].isspace())


@cache
def place_tag() -> re.Pattern[str]:
    """Match a level with or without a place in the source: `ERROR [x.py:470] `, `[E x.cpp:2] `."""
    place = r"\[?[\w./<>\-]+\.(?:py|cpp|cc|cu|c|rs|h)(?::\d+)?(?::[\w<>.]+)?\]:?"
    level = rf"(?:\[{_LEVEL}\]|{_LEVEL}\b:?|[EFCW])"
    no_error = r"(?! ?(?:\w+\.){0,6}\w*(?:Error|Exception|Interrupt):)"
    return re.compile(
        rf"(?P<tag>(?:{level}\s{{1,8}}{place}|\[{_LEVEL}[|: ][\w.]+:\d+\](?: >>)?|\[[EFW] "
        rf"[\w./\-]+:?\d*\]|{_LEVEL}\s{{0,8}}[:|-]{{1,2}}{no_error}[\w.:\- ]{{0,60}}[:\-|]{{1,2}}"
        rf"|\[{_LEVEL}\](?: -)?|{_LEVEL}(?::|\s{{0,8}}[|\-](?= ))?)) ?"
    )


@cache
def dump_line() -> re.Pattern[str]:
    """Match a line that can only belong to the dump of an exception."""
    return re.compile(
        r'\s*File "|\s*Traceback \(most|\s*(?:During handling of|The above exception)'
        r"|(?:\w+\.){0,6}\w*(?:Error|Exception|Interrupt)(?::|$)"
    )
