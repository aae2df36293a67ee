"""What a launcher's report says of the first failing process, and what ZeRO says of its shards.

    failed (exitcode: -9) local_rank: 0 (pid: 6774) of binary: /usr/bin/python3
    Root Cause (first observed failure):
    [0]:
      time      : 2024-07-25_12:48:53
      host      : node-a
      rank      : 3 (local_rank: 3)
      exitcode  : -9 (pid: 6774)
      error_file: <N/A>
      traceback : Signal 9 (SIGKILL) received by PID 6774
    ProcessFailure(local_rank=2, pid=701, exitcode=-7, ...)
    [ERROR] [launch.py:325:sigkill_handler] ['python', 'train.py'] exits with return code = -9
    Command '['python', 'train.py']' returned non-zero exit status 1.
    ... died with <Signals.SIGKILL: 9>.
    mpirun noticed that process rank 3 with PID 811 on node node-a exited on signal 9 (Killed).
    Rank: 0 partition count [4, 4] and sizes[(1512427796, False), (65536, False)]

Exit codes below zero are signals, as are those above 128 of a shell. The root cause of a report
goes before what other lines say.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.events import fact, part_quote
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.launcher_table import entry_line
from oomdoctor.model.core import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine, Value

ANCHORS = (
    "exitcode",
    "exit_code",
    "root cause",
    "exits with return code",
    "non-zero exit status",
    "died with <signals.",
    "exited on signal",
    "crashed with exit code",
    "exited with code",
    "exited with exit code",
    "exit code:",
    "partition count [",
)
LONGEST = 4000
BLOCK_LINES = 12
SHELL_SIGNALS = range(129, 160)
_ROOT = ("root cause (first observed failure):", "root cause:")
_FIELDS = {"time": "launch.root_time", "host": "launch.root_host", "rank": "launch.root_rank"}


@cache
def _code() -> re.Pattern[str]:
    return re.compile(
        r"\b[Ee]xit_?[Cc]ode\"? {0,3}[:=] ?(?P<a>-?\d+)|exits with return code = (?P<b>-?\d+)"
        r"|non-zero exit status (?P<c>\d+)|died with <Signals\.\w+: (?P<s>\d+)>"
        r"|exited on signal (?P<t>\d+)|crashed with exit code (?P<d>-?\d+)"
        r"|\b[Ee]xited with (?:exit )?code (?P<e>\d+)|[Ee]xit [Cc]ode: +(?P<f>\d+)\b"
    )


@cache
def _partition() -> re.Pattern[str]:
    return re.compile(r"partition count \[(?P<counts>[\d, ]+)\] and sizes ?\[(?P<sizes>[^\]]*)\]")


@cache
def _number_of_pair() -> re.Pattern[str]:
    return re.compile(r"\((\d+),")


def read(document: Document) -> Reading:
    """Return the first failure's signal or status, rank, host and time, and ZeRO's partitions."""
    facts: dict[str, Fact] = {}
    failed: set[str] = set()
    for index in haystack_of(document).telling(ANCHORS):
        line = document.lines[index]
        if line.text.strip().lower().startswith(_ROOT):
            for one in _block(document, index):
                facts[one.key] = one
        for one in (*_ends(document, line), *_shards(document, line)):
            facts.setdefault(one.key, one)
    for line in document.lines if any(key.startswith("launch.root") for key in facts) else ():
        found = entry_line().match(line.text[:LONGEST])
        if found is not None and found["key"] == "rank":
            failed.add(found["value"])
    if failed:
        facts["launch.failed_ranks"] = fact("launch.failed_ranks", len(failed))
    return Reading(facts=tuple(facts.values()))


def _block(document: Document, index: int) -> Iterator[Fact]:
    """Yield what the block under "Root Cause" says."""
    for line in document.lines[index + 1 : index + 1 + BLOCK_LINES]:
        found = entry_line().match(line.text[:LONGEST])
        if found is None:
            continue
        quote = part_quote(document, line, *found.span())
        if found["key"] == "exitcode":
            yield from _of_code(document, line, found["value"], found.span())
            return
        value: Value = found["value"]
        if found["key"] == "rank":
            if not found["value"].isdecimal():
                continue
            value = int(found["value"])
        yield fact(_FIELDS[found["key"]], value, [quote])


def _ends(document: Document, line: LogLine) -> Iterator[Fact]:
    found = _code().search(line.text[-LONGEST:])
    if found is None:
        return
    shift = max(0, len(line.text) - LONGEST)
    span = (found.start() + shift, found.end() + shift)
    signal = found["s"] or found["t"]
    code = signal or next(text for text in found.groups() if text is not None)
    yield from _of_code(document, line, f"-{code}" if signal else code, span)


def _of_code(document: Document, line: LogLine, text: str, span: tuple[int, int]) -> Iterator[Fact]:
    code = int(text) if text.removeprefix("-").isdecimal() and len(text) < 6 else 0
    quote = part_quote(document, line, *span)
    if code < 0 or code in SHELL_SIGNALS:
        yield fact("launch.signal", -code if code < 0 else code - 128, [quote])
    elif code > 0:
        yield fact("launch.exit_status", code, [quote])


def _shards(document: Document, line: LogLine) -> Iterator[Fact]:
    found = _partition().search(line.text[:LONGEST])
    if found is None:
        return
    quote = part_quote(document, line, *found.span())
    counts = [int(one) for one in found["counts"].split(",") if one.strip().isdecimal()]
    numel = sum(int(one) for one in _number_of_pair().findall(found["sizes"]))
    if counts:
        yield fact("dist.partitions", max(counts), [quote])
    if numel:
        yield fact("dist.partition_numel", numel, [quote])
