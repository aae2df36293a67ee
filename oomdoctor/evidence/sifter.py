"""What is kept of an input that is too large to hold: head, tail, and pieces around failures.

The sifter sees the input once, chunk by chunk, and holds three chunks: what surrounds a place in
the middle one lies in its neighbours. Of each literal the first places and the last ones stay.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from oomdoctor.evidence.long_lines import whole_characters
from oomdoctor.evidence.sieve import REACH, Hit, hits_in
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

HEAD_BYTES = 96 * 1024
TAIL_BYTES = 96 * 1024
KEPT_BYTES = 1280 * 1024
FIRST_BYTES = 96 * 1024
"""So much is kept before the first strong place: the tracebacks of many ranks stand there."""

SEARCHED_BYTES = 16 * 1024
"""Within so many bytes of its ends a piece is cut where a line starts or ends."""

STRONG_BEFORE, STRONG_AFTER = 24 * 1024, 16 * 1024
WEAK_BEFORE, WEAK_AFTER = 8 * 1024, 4 * 1024
STRONG_FIRST, STRONG_LAST = 3, 3
WEAK_FIRST, WEAK_LAST = 1, 3


class Piece(NamedTuple):
    """A part of the input: where it starts, in which line, its bytes, and what it is good for.

    The lower its `rank`, the sooner it is kept where there is no room for all.
    """

    offset: int
    line: int
    data: bytes
    rank: int = 0
    starts_line: bool = True

    @property
    def end(self) -> int:
        """Return the offset behind its last byte."""
        return self.offset + len(self.data)


class _Places:
    """The first pieces around one literal, and the last ones."""

    def __init__(self, hit: Hit) -> None:
        self.strong = hit.strong
        self.most = STRONG_FIRST if hit.strong else WEAK_FIRST
        self.firsts: list[Piece] = []
        self.lasts: deque[Piece] = deque(maxlen=STRONG_LAST if hit.strong else WEAK_LAST)

    def add(self, piece: Piece) -> None:
        if len(self.firsts) < self.most:
            self.firsts.append(piece)
        else:
            self.lasts.append(piece)

    def ranked(self) -> Iterable[Piece]:
        """Yield the pieces: the first and the last one weigh most, strong ones more than weak."""
        base = 0 if self.strong else 10
        for rank, piece in enumerate(self.firsts):
            yield piece._replace(rank=piece.rank or base + 2 + 2 * rank)
        for rank, piece in enumerate(reversed(self.lasts)):
            yield piece._replace(rank=base + 1 + 2 * rank)


class Sifter:
    """Takes an input chunk by chunk; `before` is what stands right before it, as context alone."""

    def __init__(self, *, offset: int = 0, before: bytes = b"", head: bool = True) -> None:
        """Start at `offset` of the input; a part that is not its first has no head to keep."""
        self.position = offset
        self.lines = 0
        self._before = before
        self._chunk = b""
        self._head = head
        self._strong = False
        self._places: dict[bytes, _Places] = {}
        self._ends: list[Piece] = []

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk, and look at the one before it."""
        if self._chunk:
            self._sift(chunk)
        self._chunk = chunk

    def finish(self, *, after: bytes = b"", tail: bool = True) -> None:
        """Look at the last chunk; `after` is what stands behind it, as context alone."""
        before, chunk = self._before, self._chunk
        if not chunk:
            return
        line = self.lines
        self._sift(after)
        if tail:
            start = max(0, len(before) + len(chunk) - TAIL_BYTES)
            cut = _Cut(before, chunk, b"", self.position - len(chunk), line)
            self._ends.append(cut.piece(start, len(before) + len(chunk), lead=TAIL_BYTES))

    def pieces(self) -> list[Piece]:
        """Return all pieces that may be kept."""
        return [*self._ends, *(one for places in self._places.values() for one in places.ranked())]

    def _sift(self, after: bytes) -> None:
        before, chunk = self._before, self._chunk
        cut = _Cut(before, chunk, after, self.position, self.lines)
        if self._head:
            self._take_head(cut)
        border = before[-REACH:] + chunk[:REACH]
        shift = len(before) - min(REACH, len(before))
        hits = {Hit(shift + at, literal, strong) for at, literal, strong in hits_in(border)}
        hits.update(Hit(len(before) + at, word, strong) for at, word, strong in hits_in(chunk))
        for hit in sorted(hits):
            self._take(cut, hit)
        self.position += len(chunk)
        self.lines += chunk.count(b"\n")
        self._before, self._chunk = chunk, b""

    def _take(self, cut: _Cut, hit: Hit) -> None:
        first = hit.strong and not self._strong
        if first:
            self._strong = True
            lead = FIRST_BYTES
        else:
            lead = STRONG_BEFORE if hit.strong else WEAK_BEFORE
        start = max(0, hit.at - lead)
        stop = hit.at + (STRONG_AFTER if hit.strong else WEAK_AFTER)
        piece = cut.piece(start, stop, lead=hit.at - start)
        places = self._places.get(hit.literal)
        if places is None:
            places = self._places[hit.literal] = _Places(hit)
        places.add(piece._replace(rank=1) if first else piece)

    def _take_head(self, cut: _Cut) -> None:
        self._head = False
        start = len(cut.before)
        self._ends.append(cut.piece(start, start + HEAD_BYTES, lead=0))


class _Cut:
    """Three chunks in a row as one text to cut pieces out of; counts line feeds only once."""

    def __init__(self, before: bytes, chunk: bytes, after: bytes, offset: int, lines: int) -> None:
        self.before = before
        self._parts = (before, chunk, after)
        self._offset = offset - len(before)
        self._lines = lines
        self._counted: tuple[int, int] | None = None

    def piece(self, start: int, stop: int, *, lead: int) -> Piece:
        """Cut a piece out; the line that its first `lead` bytes begin in, and its last, may go."""
        data = self._slice(start, stop)
        at = self._offset + start
        line = 1 + self._line_feeds(start)
        starts = at == 0 or self._slice(start - 1, start) == b"\n"
        if not starts:
            skipped = _line_start(data, lead)
            line += data.count(b"\n", 0, skipped)
            starts = data[:skipped].endswith(b"\n")
            data = data[skipped:]
            at += skipped
            lead -= skipped
        return Piece(at, line, _whole_lines(data, max(lead, 0)), starts_line=starts)

    def _slice(self, start: int, stop: int) -> bytes:
        found = []
        for part in self._parts:
            if start < len(part) and stop > 0:
                found.append(part[max(0, start) : stop])
            start -= len(part)
            stop -= len(part)
        return b"".join(found)

    def _line_feeds(self, start: int) -> int:
        """Return how many line feeds stand before a place; places come in rising order mostly."""
        at, count = self._counted or (len(self.before), self._lines)
        if start < at:
            count -= self._count(start, at)
        else:
            count += self._count(at, start)
        self._counted = (start, count)
        return count

    def _count(self, start: int, stop: int) -> int:
        return sum(
            part.count(b"\n", max(0, start - shift), max(0, stop - shift))
            for part, shift in zip(self._parts, self._shifts(), strict=True)
        )

    def _shifts(self) -> tuple[int, int, int]:
        before, chunk, _ = self._parts
        return 0, len(before), len(before) + len(chunk)


def _line_start(data: bytes, lead: int) -> int:
    """Return where the first line starts within `lead`; carriage returns part lines as well."""
    most = min(lead, SEARCHED_BYTES)
    ends = [at for end in (b"\n", b"\r") if (at := data.find(end, 0, most)) >= 0]
    if ends:
        at = min(ends)
        return at + (2 if data.startswith(b"\r\n", at) else 1)
    return next((at for at in range(min(3, len(data))) if data[at] & 0xC0 != 0x80), 0)


def _whole_lines(data: bytes, lead: int) -> bytes:
    """Return `data` without the line that breaks off at its end, if one ends behind `lead`."""
    least = max(lead, len(data) - SEARCHED_BYTES)
    end = max(data.rfind(b"\n", least), data.rfind(b"\r", least))
    return data[: end + 1] if end >= 0 else whole_characters(data)


def chosen(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces that have room, in order; those that overlap become one."""
    held: list[Piece] = []
    room = KEPT_BYTES
    for piece in sorted(pieces, key=lambda one: (one.rank, one.offset)):
        if len(piece.data) <= room:
            held.append(piece)
            room -= len(piece.data)
    joined: list[Piece] = []
    for piece in sorted(held, key=lambda one: (one.offset, -len(one.data))):
        last = joined[-1] if joined else None
        if last is None or piece.offset > last.end:
            joined.append(piece)
        elif piece.end > last.end:
            joined[-1] = last._replace(data=last.data + piece.data[last.end - piece.offset :])
    return joined
