"""Lines of one writer as one text without white space, so that wrapped messages read as one.

A terminal cuts a long message at its width, in the middle of a word or a number; a log collector
cuts it at a blank; old builds print two blanks or none. Without white space they are all the same:

    CUDA out of memory. Tried to allocate 27.4         CUDAoutofmemory.Triedtoallocate27.43GiB.GPU0
    3 GiB. GPU  0 has a total capacity of 31.74 GiB    hasatotalcapacityof31.74GiB

A blank line stays as a line feed, which no message crosses.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from oomdoctor.evidence.events import part_quote
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from oomdoctor.evidence.haystack import Haystack
    from oomdoctor.model.core import Document, LogLine, Quote

BEFORE = 3
AFTER = 16
WRAP_COLUMNS = 40
"""No terminal is narrower: a shorter line was not cut in the middle of a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Lines that follow each other in one stream, squeezed; `indexes` are places in the document.

    `starts` holds the offset in `text` at which each line begins.
    """

    document: Document
    indexes: tuple[int, ...]
    text: str
    starts: tuple[int, ...]

    def index_at(self, offset: int) -> int:
        """Return the document's line index of the character at `offset`."""
        return self.indexes[self._position(offset)]

    def line_at(self, offset: int) -> LogLine:
        """Return the line of the character at `offset`."""
        return self.document.lines[self.index_at(offset)]

    def column_at(self, offset: int) -> int:
        """Return the 0-based place of the character at `offset` in its line's cleaned text."""
        position = self._position(offset)
        columns = _columns(self.document.lines[self.indexes[position]].text)
        nth = offset - self.starts[position]
        return columns[nth] if nth < len(columns) else 0

    def end_of_line(self, offset: int) -> int:
        """Return the offset behind the last character of the line that `offset` is in."""
        following = self._position(offset) + 1
        return self.starts[following] if following < len(self.starts) else len(self.text)

    def quotes(self, start: int, end: int) -> tuple[Quote, ...]:
        """Quote `start:end`, one quote for each line that it spans."""
        found = []
        at = start
        while at < end:
            stop = min(end, self.end_of_line(at))
            line = self.line_at(at)
            first, last = self.column_at(at), self.column_at(stop - 1)
            found.append(part_quote(self.document, line, first, last + 1))
            at = stop
        return tuple(found)

    def cuts_number(self, start: int, end: int) -> bool:
        """Say whether `start:end` joins digits over the end of a line too short to be wrapped."""
        at = self.end_of_line(start)
        while at < end:
            number = self.text[at - 1] in _NUMBER and self.text[at] in _NUMBER
            if number and len(self.line_at(at - 1).raw.rstrip("\r\n")) < WRAP_COLUMNS:
                return True
            at = self.end_of_line(at)
        return False

    def _position(self, offset: int) -> int:
        return max(0, bisect_right(self.starts, offset) - 1)


_NUMBER = frozenset("0123456789.")


@lru_cache(maxsize=64)
def _columns(text: str) -> tuple[int, ...]:
    """Return where the characters that are no white space stand."""
    return tuple(index for index, char in enumerate(text) if not char.isspace())


def runs_near(haystack: Haystack, literals: Iterable[str]) -> Iterator[Run]:
    """Yield runs around the lines that hold one of `literals`, each stream for itself."""
    hits = set(haystack.telling(literals))
    if not hits:
        return
    for members in _streams(haystack.document).values():
        positions = [at for at, index in enumerate(members) if index in hits]
        for first, last in _windows(positions, len(members)):
            yield _squeeze(haystack.document, members[first:last])


def whole(document: Document) -> Iterator[Run]:
    """Yield one run per writer over all lines."""
    for members in _streams(document).values():
        yield _squeeze(document, members)


def _streams(document: Document) -> dict[str, list[int]]:
    """Group line indexes by writer; lines without a prefix also go on with the writer before.

    The rest of a wrapped line carries no prefix. Blank prefixes form a stream of their own too.
    """
    streams: dict[str, list[int]] = {}
    last = ""
    for index, line in enumerate(document.lines):
        streams.setdefault(line.stream, []).append(index)
        if line.stream:
            last = line.stream
        elif last:
            streams[last].append(index)
    return streams


def _windows(positions: list[int], count: int) -> Iterator[tuple[int, int]]:
    """Merge the surroundings of the hits into disjoint `first:last` slices."""
    first = last = -1
    for at in positions:
        begin, end = max(0, at - BEFORE), min(count, at + AFTER + 1)
        if begin > last:
            if last > 0:
                yield first, last
            first = begin
        last = end
    if last > 0:
        yield first, last


def _squeeze(document: Document, indexes: list[int]) -> Run:
    parts = ["".join(document.lines[index].text.split()) or "\n" for index in indexes]
    starts = accumulate((len(part) for part in parts[:-1]), initial=0)
    return Run(document=document, indexes=tuple(indexes), text="".join(parts), starts=tuple(starts))
