"""Blocks of whole lines out of a byte stream, bounded however large the input or a line is.

An input of up to 8 MiB is kept whole. Of a larger one the head, the tail and what surrounds the
literals of failures stay, with true line numbers; the rest is only counted. A line longer than
64 KiB (a progress bar that wrote carriage returns for days) keeps its head, its tail and what
surrounds the first literal in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BLOCK_BYTES = 256 * 1024
LINE_BYTES = 64 * 1024
WHOLE_BYTES = 8 * 1024 * 1024
HEAD_BLOCKS = 8
TAIL_BLOCKS = 16
STRONG_BLOCKS = 32
WEAK_BLOCKS = 12
_PIECE = 24 * 1024
_AROUND = 4 * 1024
_JOIN = b" [...] "
STRONG = (
    b"out of memory",
    b"outofmemory",
    b"out_of_memory",
    b"outofresources",
    b"resource_exhausted",
    b"resourceexhausted",
    b"alloc_failed",
    b"oom-kill",
    b"oom_kill",
    b"oomkilled",
    b"allocate memory",
    b"failed to allocate",
    b"not enough memory",
    b"illegal memory access",
    b"device-side assert",
    b"bus error",
)
WEAK = (b"traceback (most", b"killed", b"no space left", b"watchdog caught", b"exit code")


class Block(NamedTuple):
    """Whole lines of an input: number of the first one, how many, and their bytes."""

    first_line: int
    lines: int
    data: bytes


class Kept(NamedTuple):
    """What was kept of an input, and how many bytes, lines and long lines it had."""

    blocks: tuple[Block, ...]
    total_bytes: int
    total_lines: int
    cut_lines: tuple[int, ...]


def keep(chunks: Iterable[bytes], *, whole_bytes: int = WHOLE_BYTES) -> Kept:
    """Read `chunks` to the end and keep them whole, or what matters of more than `whole_bytes`."""
    cut: list[int] = []
    kept = _Keeper(whole_bytes)
    line = 1
    total = 0
    for data, cut_offsets, read_bytes in _line_blocks(chunks):
        count = data.count(b"\n")
        cut.extend(line + offset for offset in cut_offsets)
        kept.add(Block(line, count, data))
        line += count
        total += read_bytes
    return Kept(kept.blocks(), total, line, tuple(cut))


class _Keeper:
    """Collects blocks; drops those between head and tail that show no sign once it overflows."""

    def __init__(self, whole_bytes: int) -> None:
        self._whole_bytes = whole_bytes
        self._held: list[Block] = []
        self._bytes = 0
        self._overflow = False
        self._recent: list[Block] = []
        self._after_hit = False
        self._strong = 0
        self._weak = 0

    def add(self, block: Block) -> None:
        """Take the next block."""
        if not self._overflow:
            self._held.append(block)
            self._bytes += len(block.data)
            if self._bytes > self._whole_bytes:
                self._prune()
            return
        self._sift(block)

    def blocks(self) -> tuple[Block, ...]:
        """Return the kept blocks in order."""
        return tuple(self._held + self._recent)

    def _prune(self) -> None:
        self._overflow = True
        held, self._held = self._held, []
        for block in held:
            self._sift(block)

    def _sift(self, block: Block) -> None:
        """Keep the head and blocks around literals; let the others leave with the tail window."""
        if len(self._held) < HEAD_BLOCKS and not self._recent:
            self._held.append(block)
            return
        hit = self._hit(block.data)
        if hit:
            self._held.extend(self._recent[-1:])
            self._held.append(block)
            self._recent.clear()
        elif self._after_hit:
            self._held.append(block)
        else:
            self._recent.append(block)
            if len(self._recent) > TAIL_BLOCKS:
                del self._recent[0]
        self._after_hit = hit

    def _hit(self, data: bytes) -> bool:
        if self._strong >= STRONG_BLOCKS and self._weak >= WEAK_BLOCKS:
            return False
        lowered = data.lower()
        if self._strong < STRONG_BLOCKS and any(word in lowered for word in STRONG):
            self._strong += 1
            return True
        if self._weak < WEAK_BLOCKS and any(word in lowered for word in WEAK):
            self._weak += 1
            return True
        return False


def _line_blocks(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, list[int], int]]:
    """Yield (whole lines, offsets of cut lines among them, bytes read for it)."""
    pending = bytearray()
    read_bytes = 0
    dropping: _LongLine | None = None
    for chunk in chunks:
        read_bytes += len(chunk)
        rest = chunk
        if dropping is not None:
            end = rest.find(b"\n")
            dropping.feed(rest if end < 0 else rest[: end + 1])
            if end < 0:
                continue
            yield dropping.line(), [0], read_bytes
            read_bytes, dropping, rest = 0, None, rest[end + 1 :]
        pending += rest
        end = pending.rfind(b"\n") + 1
        if end >= BLOCK_BYTES:
            data, offsets = _shorten(bytes(pending[:end]))
            yield data, offsets, read_bytes
            read_bytes = 0
            del pending[:end]
        if len(pending) > 2 * BLOCK_BYTES:
            if pending.find(b"\n") >= 0:
                data, offsets = _shorten(bytes(pending[:end]))
                yield data, offsets, read_bytes
                read_bytes = 0
                del pending[:end]
            dropping = _LongLine()
            dropping.feed(bytes(pending))
            pending.clear()
    if dropping is not None:
        yield dropping.line(), [0], read_bytes
    elif pending or read_bytes:
        data, offsets = _shorten(bytes(pending))
        yield data, offsets, read_bytes


def _shorten(data: bytes) -> tuple[bytes, list[int]]:
    """Cut the lines of `data` that are longer than a line may be."""
    position = 0
    while len(data) - position > LINE_BYTES:
        end = data.rfind(b"\n", position, position + LINE_BYTES)
        if end < 0:
            break
        position = end + 1
    else:
        return data, []
    lines = data.split(b"\n")
    offsets = [offset for offset, line in enumerate(lines) if len(line) > LINE_BYTES]
    for offset in offsets:
        long = _LongLine()
        long.feed(lines[offset])
        lines[offset] = long.line()
    return b"\n".join(lines), offsets


class _LongLine:
    """A line too long to hold: its head, its tail, and what surrounds the first failure literal."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._middle = b""

    def feed(self, data: bytes) -> None:
        """Take the next piece of the line."""
        if len(self._head) < _PIECE:
            room = _PIECE - len(self._head)
            self._head += data[:room]
            data = data[room:]
        joined = self._tail + data
        if not self._middle and len(joined) > _PIECE:
            lowered = joined.lower()
            found = [at for word in STRONG if (at := lowered.find(word)) >= 0]
            if found:
                at = max(0, min(found) - _AROUND)
                self._middle = joined[at : at + 2 * _AROUND]
        self._tail = joined[-_PIECE:]

    def line(self) -> bytes:
        """Return the shortened line."""
        pieces = [self._head, self._tail]
        if self._middle and self._middle not in self._tail:
            pieces.insert(1, self._middle)
        return _JOIN.join(_whole_characters(piece) for piece in pieces)


def _whole_characters(piece: bytes) -> bytes:
    """Drop the halves of UTF-8 characters that cutting left at both ends."""
    start = 0
    while start < min(3, len(piece)) and piece[start] & 0xC0 == 0x80:
        start += 1
    end = len(piece)
    for back in range(1, min(4, len(piece)) + 1):
        byte = piece[-back]
        if byte & 0xC0 == 0xC0:
            end -= back if back < _utf8_length(byte) else 0
            break
        if byte < 0x80:
            break
    return piece[start:end]


def _utf8_length(lead: int) -> int:
    if lead >= 0xF0:
        return 4
    return 3 if lead >= 0xE0 else 2
