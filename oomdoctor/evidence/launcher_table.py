"""The table that torchrun prints of the ranks that failed, and the one that it saw fail first.

```
Other Failures:
[1]:
  time      : 2026-11-30_08:30:47
  host      : gpu07
  rank      : 2 (local_rank: 2)
  exitcode  : -15 (pid: 4712)
  traceback : Signal 15 (SIGTERM) received by PID 4712
Root Cause (first observed failure):
[0]:
  rank      : 5 (local_rank: 5)
  exitcode  : 1 (pid: 4711)
```
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Quote


class Blamed(NamedTuple):
    """One entry of a launcher's table of failed ranks; `root` is the one it saw first."""

    rank: int
    root: bool
    host: str | None
    exit_code: int | None
    stamp: str | None
    quote: Quote


def blamed(document: Document) -> Iterator[Blamed]:
    """Yield the entries of torchrun's table; it is printed once, or once per launcher."""
    starts = haystack_of(document).lines_with(("root cause (first observed failure)",))
    others = haystack_of(document).lines_with(("other failures:",)) if starts else []
    for start in [*others, *starts][-8:]:
        entry: dict[str, str] = {}
        for line in document.lines[start + 1 : start + 4096]:
            found = entry_line().match(line.text)
            if found is not None:
                entry[found["key"]] = found["value"]
                if found["key"] == "exitcode" and "rank" in entry:
                    yield _entry(entry, document.quote(line), root=start in starts)
                    entry = {}
            elif _ends_table(line.text, root=start in starts):
                break


def _ends_table(text: str, *, root: bool) -> bool:
    return (root and text.startswith(("====", "----"))) or "root cause" in text.lower()


def _entry(entry: dict[str, str], quote: Quote, *, root: bool) -> Blamed:
    rank = re.match(r"\d{1,6}", entry["rank"])
    code = re.match(r"-?\d{1,6}", entry["exitcode"])
    return Blamed(
        rank=int(rank[0]) if rank else 0,
        root=root,
        host=entry.get("host"),
        exit_code=int(code[0]) if code else None,
        stamp=entry.get("time"),
        quote=quote,
    )


@cache
def entry_line() -> re.Pattern[str]:
    """Return the pattern of a line of an entry: its key, and the first word of its value."""
    return re.compile(r"^\s*(?P<key>time|host|rank|exitcode)\s{0,12}: (?P<value>\S+)")
