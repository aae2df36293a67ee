"""What a log says about its place in a job: ranks, machine, time, and how it ends.

```
[Mon Nov 30 08:30:45 2026] ...  Nov 30 08:30:45 gpu07 kernel: [12345.678901] ...
WORLD_SIZE=8                    GPU 3 has a total capacity of ...
[rank3]: torch.distributed.elastic...SignalException: Process 77 got signal: 15
```
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.instant import Instant, instant_of, spoken_instant
from oomdoctor.evidence.launcher_table import blamed
from oomdoctor.evidence.own_rank import own_rank
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from oomdoctor.evidence.launcher_table import Blamed
    from oomdoctor.model.core import Document, Failure, LogLine

_STAMPS = 20
_LAST_LINES = 40
_LOOK_BACK = 20000
_MOST_RANKS = 4096
_WORLD_WORDS = ("world_size", "world size", "nproc", "-way", "world-size")
_ENDINGS = (
    ("terminated", ("got signal: 15", "sigterm", "signal 15", "terminated")),
    ("killed", ("sigkill", "signal 9", "killed")),
    ("interrupted", ("keyboardinterrupt", "sigint")),
    ("finished", ("train_runtime", "training complete", "training finished", "finished training")),
)
_NO_ENDING = ("sending process", "closing signal", "killing subprocess", "exitcode", "exits with")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """The place of one log in a job; `told_rank` is what its text says of itself.

    `boots` is when the machine of a kernel log started, `taken` when a table of cards was made.
    """

    artifact: str
    ranks: tuple[int, ...] = ()
    told_rank: int | None = None
    told_by: str = ""
    card: int | None = None
    host: str | None = None
    world: int | None = None
    stamps: tuple[Instant, ...] = ()
    boots: Instant | None = None
    taken: Instant | None = None
    ending: str = ""
    last_stamp: str | None = None
    blamed: tuple[Blamed, ...] = ()


def view_of(document: Document) -> LogView:
    """Return what the log says about its place."""
    lines = document.lines
    ranks = {line.rank for line in lines if line.rank is not None}
    stamped = _stamped(lines)
    told, how = own_rank(document)
    return LogView(
        artifact=document.artifact.id,
        ranks=tuple(sorted(ranks))[:_MOST_RANKS],
        told_rank=told,
        told_by=how,
        card=_number_of(document, ("has a total capacity", "(gpu "), _card()),
        host=_host(document),
        world=_number_of(document, _WORLD_WORDS, _world()),
        stamps=tuple(_ends(stamped)),
        boots=_boots(document),
        taken=_taken(document),
        ending=_ending(document),
        last_stamp=stamped[-1] if stamped else None,
        blamed=tuple(blamed(document)),
    )


def with_near_stamps(document: Document, failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """Give each failure without a stamp the one of the nearest stamped line of its rank before."""
    if all(failure.stamp is not None for failure in failures):
        return tuple(failures)
    numbers = [line.number for line in document.lines]
    told = [(line, line.stamp or _spoken(line)) for line in document.lines]
    stamped = [at for at, (_, stamp) in enumerate(told) if stamp is not None]

    def near(failure: Failure) -> Failure:
        at = min(bisect_left(numbers, failure.order), len(numbers) - 1)
        first = bisect_left(stamped, at - _LOOK_BACK + 1)
        for index in reversed(stamped[first : bisect_left(stamped, at + 1)]):
            line, stamp = told[index]
            if failure.rank is None or line.rank is None or line.rank == failure.rank:
                return replace(failure, near=stamp)
        return failure

    return tuple(one if one.stamp is not None else near(one) for one in failures)


def _spoken(line: LogLine) -> str | None:
    text = line.text
    if "CANCELLED AT" not in text and "time" not in text[:8]:
        return None
    return text if spoken_instant(text) is not None else None


def _stamped(lines: Sequence[LogLine]) -> list[str]:
    """Return the first and last stamps, in the order of the lines."""
    first: list[str] = []
    for line in lines:
        if line.stamp is not None:
            first.append(line.stamp)
            if len(first) >= _STAMPS:
                break
    last: list[str] = []
    for line in reversed(lines):
        if line.stamp is not None:
            last.append(line.stamp)
            if len(last) >= _STAMPS:
                break
    return [*first, *reversed(last)]


def _ends(stamps: Sequence[str]) -> Iterator[Instant]:
    """Yield the earliest and latest instant of each kind of clock."""
    kinds: dict[tuple[str, int | None], list[Instant]] = {}
    for stamp in stamps:
        found = instant_of(stamp)
        if found is not None:
            kinds.setdefault((found.clock, found.zone), []).append(found)
    for found_here in kinds.values():
        yield from sorted({min(found_here), max(found_here)})


def _number_of(document: Document, words: Iterable[str], pattern: re.Pattern[str]) -> int | None:
    """Return the number that the first line with one of `words` gives."""
    for index in haystack_of(document).lines_with(words)[:50]:
        found = pattern.search(document.lines[index].text[:4000])
        if found is not None:
            return int(next(filter(None, found.groups())))
    return None


def _host(document: Document) -> str | None:
    hosts = set()
    for index in haystack_of(document).lines_with(("hostname", "host  ", "nodename"))[:20]:
        found = _host_line().search(document.lines[index].text[:400])
        if found is not None:
            hosts.add(found[1])
    return hosts.pop() if len(hosts) == 1 else None


def _boots(document: Document) -> Instant | None:
    """Return the time of the boot, from a line with both clocks or one that sets the clock."""
    haystack = haystack_of(document)
    for index in haystack.lines_with(("setting system clock to ",))[:1]:
        line = document.lines[index]
        found = re.search(r"setting system clock to (\S+?)(?: UTC)? \(\d+\)", line.text)
        wall, since = instant_of(found[1]) if found else None, instant_of(line.stamp or "")
        if wall is not None and since is not None and since.clock == "boot":
            return Instant(wall.seconds - since.seconds, wall.clock, 0)
    for line in document.lines[-_STAMPS:]:
        found = _both_clocks().search(line.raw[:200]) if "kernel: [" in line.raw[:200] else None
        wall = instant_of(line.stamp or "") if found else None
        if found is not None and wall is not None and wall.clock != "boot":
            return Instant(wall.seconds - float(found[1]), wall.clock, wall.zone)
    return None


def _taken(document: Document) -> Instant | None:
    """Return when a table of `nvidia-smi` was made: the date stands right above it."""
    for index in haystack_of(document).lines_with(("nvidia-smi ",))[:1]:
        for line in document.lines[max(0, index - 3) : index]:
            found = spoken_instant(line.text.strip()) or instant_of(line.stamp or "")
            if found is not None:
                return found
    return None


def _ending(document: Document) -> str:
    """Say how the log ends: terminated, killed, interrupted, finished, or not at all."""
    for line in document.lines[: -_LAST_LINES - 1 : -1]:
        lowered = line.text[:1000].lower()
        if any(word in lowered for word in _NO_ENDING):
            continue
        for name, words in _ENDINGS:
            if any(word in lowered for word in words):
                return name
    return ""


@cache
def _card() -> re.Pattern[str]:
    return re.compile(r"\bGPU (\d{1,3})(?: has a total|; )")


@cache
def _world() -> re.Pattern[str]:
    return re.compile(
        r"(?i)\bworld[_ -]size['\"]?\s?[=:]?\s?(\d{1,6})\b|\bnproc[-_]per[-_]node[= ](\d{1,4})\b"
    )


@cache
def _host_line() -> re.Pattern[str]:
    return re.compile(
        r"(?i)\b(?:hostname|nodename|host\s{2,10})['\"]?\s?[=:]\s?([A-Za-z][\w.\-]{1,80})"
    )


@cache
def _both_clocks() -> re.Pattern[str]:
    return re.compile(r"kernel: \[ *(\d{1,9}\.\d{3,9})\]")
