"""The kernel's report of a kill for memory: victim, whose memory it was, limit, use and table.

    python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
    Task in /slurm/uid_7/job_9/step_0 killed as a result of limit of /slurm/uid_7/job_9
    memory: usage 33554432kB, limit 33554432kB, failcnt 28913
    Memory cgroup stats for /slurm/uid_7/job_9: cache:8KB rss:33554000KB shmem:4KB ...
    Memory cgroup stats for /system.slice/docker-3f.scope:       (5.x: rows of bytes follow)
    anon 2147483648
    Free swap  = 0kB
    Total swap = 2097148kB
    16776190 pages RAM
    [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
    oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),...,oom_memcg=/a,task_memcg=/a/b,task=...
    Memory cgroup out of memory: Killed process 4500 (python3) total-vm:36444888kB,
        anon-rss:300000kB, file-rss:100000kB, shmem-rss:3600000kB, UID:0 pgtables:9000kB
        oom_score_adj:0

A log with several kills is read at the one whose victim held most: the others are helpers that
died with it. Any of the lines may be missing, as logs are cut.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import derived, first_of_each, stated
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.kernel_tasks import PAGE, rows_of, summed
from oomdoctor.model.core import Reading
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.model.core import Document, Fact, LogLine

ANCHORS = ("invoked oom-killer", "killed process ", "oom-kill:constraint", "killed as a result of")
KIB = 1 << 10
LONGEST = 1200
LEAD = 400
"""Lines of a report before its last one: a trace, the zones and a table of processes."""
NO_LIMIT = 1 << 52
_MOST_ROWS = 4000
_SCOPES = {
    "CONSTRAINT_NONE": "machine",
    "CONSTRAINT_MEMCG": "group",
    "CONSTRAINT_CPUSET": "nodes",
    "CONSTRAINT_MEMORY_POLICY": "nodes",
}
_VICTIM = (
    ("total-vm", "host.victim_total"),
    ("anon-rss", "host.victim_anonymous"),
    ("file-rss", "host.victim_files"),
    ("shmem-rss", "host.victim_shared"),
)
_GROUP = {
    "anon": ("host.group_anonymous", 1),
    "file": ("host.group_files", 1),
    "shmem": ("host.group_shared", 1),
    "rss": ("host.group_anonymous", KIB),
    "cache": ("host.group_files", KIB),
}


class _Kill(NamedTuple):
    at: int
    pid: int
    name: str
    resident: int


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_KILLED = r"Killed process (?P<pid>\d{1,8}),? \((?P<name>.{1,40}?)\),? (?:UID[: ]?\d+,? )?total-vm:"
_CALLER = r"(?P<name>\S.{0,40}?) invoked oom-killer: gfp_mask=\S+?.{0,200}?order=(?P<order>-?\d+)"
_REASON = (
    r"oom-kill:constraint=(?P<scope>CONSTRAINT_\w+)(?:.*?oom_memcg=(?P<group>[^,]+))?"
    r"(?:.*?task=(?P<name>[^,]+),pid=(?P<pid>\d+))?"
)
_USE = r"^\W{0,8}memory: usage (?P<used>\d+)kB, limit (?P<limit>\d+)kB, failcnt (?P<failures>\d+)"
_GROUP_LINE = r"killed as a result of limit of (?P<old>\S+)|Memory cgroup stats for (?P<new>\S+?):"
_STATS = r"\b(?P<what>anon|file|shmem|rss|cache)(?::(?P<kib>\d+)KB| (?P<bytes>\d+)\s*$)"
_SWAP = r"\b(?P<what>Free|Total) swap\s+= (?P<count>\d+)kB"
_PAGES = r"(?P<count>\d+) pages RAM"


def read(document: Document) -> Reading:
    """Return the facts of the kill whose victim held most."""
    haystack = haystack_of(document)
    kills = list(_kills(document, haystack.telling(("killed process ",))))
    chosen = max(kills, key=lambda one: one.resident, default=None)
    starts = haystack.telling(("invoked oom-killer",))
    if chosen is not None:
        end = chosen.at
    else:
        marks = haystack.telling(ANCHORS)
        if not marks:
            return Reading()
        end = min(marks[0] + LEAD, len(document.lines) - 1)
    lines = document.lines[_start_of(starts, kills, end) : end + 1]
    facts = [
        *_victim_facts(document, chosen),
        *_report_facts(document, lines),
        *_table_facts(document, lines),
    ]
    if kills:
        quotes = [document.quote(document.lines[kill.at]) for kill in kills[:3]]
        facts.append(stated("host.kills", len({kill.pid for kill in kills}), *quotes))
    return Reading(facts=(*_scope_fact(document, lines), *first_of_each(facts)))


def _kills(document: Document, indexes: Sequence[int]) -> Iterator[_Kill]:
    for index in indexes:
        text = document.lines[index].text[:LONGEST]
        found = _compiled(_KILLED).search(text)
        if found is not None:
            parts = [_part(text, word) for word, _ in _VICTIM[1:]]
            yield _Kill(index, int(found["pid"]), found["name"], sum(one or 0 for one in parts))


def _start_of(starts: Sequence[int], kills: Sequence[_Kill], end: int) -> int:
    """Return where the report that ends at `end` begins: at its first line, else near enough."""
    own = [at for at in starts if at <= end]
    if own and end - own[-1] <= _MOST_ROWS:
        return own[-1]
    earlier = [kill.at for kill in kills if kill.at < end]
    return max(end - LEAD, earlier[-1] + 1 if earlier else 0, 0)


def _said(line: LogLine) -> str:
    """Return what the kernel says, without a stamp that was left before it."""
    text = line.text[:LONGEST]
    at = text.find(" kernel: ", 0, 120)
    return text if at < 0 else text[at + len(" kernel: ") :].lstrip()


def _part(text: str, word: str) -> int | None:
    found = _compiled(rf"\b{word}: ?(\d{{1,15}})kB").search(text)
    return int(found[1]) * KIB if found is not None else None


def _victim_facts(document: Document, kill: _Kill | None) -> Iterator[Fact]:
    if kill is None:
        return
    line = document.lines[kill.at]
    quote = document.quote(line)
    yield stated("host.victim", kill.name, quote)
    yield stated("host.victim_pid", kill.pid, quote)
    for word, key in _VICTIM:
        size = _part(line.text[:LONGEST], word)
        if size is not None:
            yield stated(key, size, quote, slack=KIB / 2)
    if kill.resident:
        source = "anon-rss + file-rss + shmem-rss"
        yield derived("host.victim_resident", kill.resident, quote, source=source, slack=2 * KIB)
    adjusted = _compiled(r"oom_score_adj:(-?\d+)").search(line.text[:LONGEST])
    if adjusted is not None:
        yield stated("host.victim_adjustment", int(adjusted[1]), quote)


def _report_facts(document: Document, lines: Sequence[LogLine]) -> Iterator[Fact]:
    for line in lines:
        text = _said(line)
        if "invoked oom-killer" in text:
            yield from _caller_facts(document, line)
        elif "memory: usage" in text:
            yield from _use_facts(document, line)
        elif "swap " in text or "pages RAM" in text:
            yield from _machine_facts(document, line)
        elif "Memory cgroup stats" in text or "as a result of limit" in text:
            found = _compiled(_GROUP_LINE).search(text)
            if found is not None:
                path = found["old"] or found["new"]
                yield stated("host.group_path", path, document.quote(line))
            yield from _stats_facts(document, line)
        elif "oom-kill:constraint" in text:
            yield from _reason_facts(document, line)
        elif text.lstrip().startswith(("anon ", "file ", "shmem ")):
            yield from _stats_facts(document, line)


def _caller_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    found = _compiled(_CALLER).search(_said(line))
    if found is not None:
        quote = document.quote(line)
        yield stated("host.kill_caller", found["name"].strip(), quote)
        yield stated("host.kill_order", int(found["order"]), quote)


def _use_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    found = _compiled(_USE).search(_said(line))
    if found is None:
        return
    quote = document.quote(line)
    if int(found["limit"]) * KIB < NO_LIMIT:
        yield stated("host.group_limit", int(found["limit"]) * KIB, quote, slack=KIB / 2)
        yield stated("host.group_used", int(found["used"]) * KIB, quote, slack=KIB / 2)
    yield stated("host.group_failures", int(found["failures"]), quote)


def _machine_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    swap = _compiled(_SWAP).search(_said(line))
    if swap is not None:
        size, quote = int(swap["count"]) * KIB, document.quote(line)
        yield stated(f"host.swap_{swap['what'].lower()}", size, quote, slack=KIB / 2)
    pages = _compiled(_PAGES).search(_said(line))
    if pages is not None:
        quote = document.quote(line)
        yield stated("host.ram_total", int(pages["count"]) * PAGE, quote, slack=PAGE / 2)


def _stats_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    text, quote = _said(line), document.quote(line)
    if " rss:0KB" in text:
        return  # a group above those that hold the processes
    for found in _compiled(_STATS).finditer(text):
        key, unit = _GROUP[found["what"]]
        if found["kib"] is not None:
            yield stated(key, int(found["kib"]) * KIB, quote, slack=KIB / 2)
        elif unit == 1:
            yield stated(key, int(found["bytes"]), quote)


def _reason_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    found = _compiled(_REASON).search(_said(line))
    if found is None:
        return
    quote = document.quote(line)
    if found["group"] is not None:
        yield stated("host.group_path", found["group"], quote)
    if found["name"] is not None:
        yield stated("host.victim", found["name"], quote)
        yield stated("host.victim_pid", int(found["pid"]), quote)


def _scope_fact(document: Document, lines: Sequence[LogLine]) -> Iterator[Fact]:
    """Say whose memory it was; the caller's order of -1 outweighs what the later lines say."""
    told: dict[str, LogLine] = {}
    for line in lines:
        scope = _scope_of(_said(line))
        if scope is not None:
            told.setdefault(scope, line)
    for scope in ("manual", "group", "nodes", "machine"):
        if scope in told:
            yield stated("host.kill_scope", scope, document.quote(told[scope]))
            return


def _scope_of(text: str) -> str | None:
    if "invoked oom-killer" in text:
        return "manual" if "order=-1" in text else None
    if "moom_callback" in text or "Manual OOM execution" in text:
        return "manual"
    if "oom-kill:constraint" in text:
        found = _compiled(_REASON).search(text)
        return _SCOPES.get(found["scope"]) if found is not None else None
    if "emory cgroup out of memory" in text or "as a result of limit of" in text:
        return "group"
    if "mem_cgroup_out_of_memory" in text or "memory.oom.group" in text:
        return "group"
    return "machine" if text.lstrip().startswith("Out of memory: Kill") else None


def _table_facts(document: Document, lines: Sequence[LogLine]) -> Iterator[Fact]:
    rows = rows_of(lines)
    if not rows:
        return
    tasks = summed(rows)
    first = tasks[0]
    quotes = tuple(document.quote(line) for line in first.lines)
    source = "resident pages of the table of processes x 4 KiB"
    yield stated("host.tasks_name", first.name, *quotes[:1])
    yield derived("host.tasks", first.processes, *quotes, source="rows of that name")
    yield derived("host.tasks_resident", first.resident, *quotes, source=source)
    yield derived("host.tasks_largest", first.largest, *quotes[:1], source=source)
    total = sum(one.resident for one in tasks)
    yield derived("host.all_resident", total, *quotes, source=source)
