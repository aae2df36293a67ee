"""Reads a snapshot through the compiled reader: the file goes by in pieces, its columns stay.

The compiled reader knows what PyTorch writes. Whatever else a file has is for the reader in Python,
which reads small files of every kind, and says what is wrong with one.
"""

from __future__ import annotations

import ctypes
import json
import os
from array import array
from typing import TYPE_CHECKING

from oomdoctor.facts.segments import SMALL_SEGMENT
from oomdoctor.record import NamedTuple
from oomdoctor.snapshot.events import ACTIONS, NO_POOL, Events
from oomdoctor.snapshot.shapes import Annotation, Piece, Segment, Snapshot, Trace, devices_of
from oomdoctor.snapshot.stacks import Budget, Stack, StackTable, frame_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from oomdoctor.snapshot.events import PoolId

MORE, DONE, STRANGE, FORBIDDEN, NO_MEMORY, CUT_OFF, TOO_LARGE = range(7)
(
    EVENT_ACTION, EVENT_ADDRESS, EVENT_SIZE, EVENT_STREAM, EVENT_POOL, EVENT_STACK, EVENT_TIME,
    EVENT_NOTE, TEXT_ENDS, TEXT_BYTES, FRAME_ROWS, STACK_ENDS, STACK_FRAMES, POOL_PAIRS,
    STREAM_NUMBERS, ACTION_TEXTS, SEGMENT_ROWS, BLOCK_ROWS, NOTE_ROWS, WHICH_ROWS, SETTINGS,
) = range(21)  # fmt: skip


class Ended(NamedTuple):
    """Why the compiled reader stopped, and at which byte of the pickle."""

    state: int
    place: int


def read_stream(reader: ctypes.CDLL, pieces: Iterable[bytes], most_bytes: int) -> Snapshot | Ended:
    """Read a pickle in pieces; where it is none that PyTorch writes, say where that showed."""
    columns = _Columns(reader)
    try:
        size, state = 0, MORE
        for piece in pieces:
            size += len(piece)
            if size > most_bytes:
                return Ended(TOO_LARGE, most_bytes)
            state = columns.feed(piece)
            if state != MORE:
                break
        columns.rest()
        if state != DONE:
            return Ended(CUT_OFF if state == MORE else state, columns.place())
        return _snapshot(columns)
    except (UnicodeDecodeError, ValueError):
        return Ended(STRANGE, columns.place())
    finally:
        columns.end()


class _Columns:
    """The compiled reader with what it has kept of one file."""

    def __init__(self, reader: ctypes.CDLL) -> None:
        self._reader = reader
        self._handle = reader.snapshot_begin(int.from_bytes(os.urandom(8), "little"))
        if not self._handle:
            raise MemoryError

    def feed(self, piece: bytes) -> int:
        return int(self._reader.snapshot_feed(self._handle, piece, len(piece)))

    def rest(self) -> None:
        self._reader.snapshot_rest(self._handle)

    def place(self) -> int:
        return int(self._reader.snapshot_place(self._handle))

    @property
    def has_notes(self) -> bool:
        return bool(self._reader.snapshot_has_notes(self._handle))

    def take(self, which: int, code: str) -> array[int]:
        """Move a column over here."""
        found = array(code)
        found.frombytes(self.take_bytes(which))
        return found

    def take_bytes(self, which: int) -> bytes:
        place = ctypes.c_void_p()
        size = int(self._reader.snapshot_column(self._handle, which, ctypes.byref(place)))
        found = ctypes.string_at(place, size) if size else b""
        self._reader.snapshot_drop(self._handle, which)
        return found

    def end(self) -> None:
        self._reader.snapshot_end(self._handle)


class _Texts:
    """The texts of a snapshot by their numbers."""

    def __init__(self, columns: _Columns) -> None:
        self._ends = columns.take(TEXT_ENDS, "Q")
        self._bytes = columns.take_bytes(TEXT_BYTES)

    def __getitem__(self, at: int) -> str:
        first = self._ends[at - 1] if at else 0
        return self._bytes[first : self._ends[at]].decode("utf-8", "surrogatepass")


def _snapshot(columns: _Columns) -> Snapshot:
    """Return the values of a snapshot that was read to its end."""
    texts = _Texts(columns)
    table, numbers = _stacks(columns, texts)
    pairs = columns.take(POOL_PAIRS, "Q")
    pools = list(zip(pairs[::2], pairs[1::2], strict=True))
    ranges = columns.take(WHICH_ROWS, "Q")
    own, notes, *spans = zip(ranges[::2], ranges[1::2], strict=True)
    traces = _traces(columns, texts, numbers, pools, spans)
    segments = _segments(columns, texts, numbers, pools, own)
    listed = json.loads(columns.take_bytes(SETTINGS).decode("utf-8", "surrogatepass") or "{}")
    return Snapshot(
        devices=devices_of(segments, traces),
        settings=listed if isinstance(listed, dict) else {},
        stacks=tuple(table.stacks),
        annotations=_annotations(columns, texts, notes),
    )


def _stacks(columns: _Columns, texts: _Texts) -> tuple[StackTable, list[int]]:
    """Return the stacks, and the number of each one that the columns name; 0 stands for none."""
    rows = columns.take(FRAME_ROWS, "Q")
    frames = [
        frame_of(texts[name], texts[file], line)
        for name, file, line in zip(rows[::3], rows[1::3], rows[2::3], strict=True)
    ]
    table = StackTable(Budget(None))
    numbers, first = [0], 0
    listed = columns.take(STACK_FRAMES, "I")
    for end in columns.take(STACK_ENDS, "Q"):
        several = [frames[one] for one in listed[first:end]]
        kept = tuple(frame for frame, _ in several if frame is not None)
        numbers.append(table.add(Stack(kept, any(engine for _, engine in several))))
        first = end
    return table, numbers


def _traces(
    columns: _Columns,
    texts: _Texts,
    numbers: Sequence[int],
    pools: Sequence[PoolId],
    spans: Sequence[tuple[int, int]],
) -> list[Trace]:
    """Return the events of all cards, in the order of the cards."""
    names = [texts[number] for number in columns.take(ACTION_TEXTS, "Q")]
    actions = [*ACTIONS, *(one for one in names if one not in ACTIONS)]
    kinds = bytes(actions.index(one) for one in names).ljust(256, b"\0")
    events = Events(
        array("B", columns.take_bytes(EVENT_ACTION).translate(kinds)),
        columns.take(EVENT_ADDRESS, "Q"),
        columns.take(EVENT_SIZE, "Q"),
        columns.take(EVENT_STREAM, "H"),
        columns.take(EVENT_POOL, "H"),
    )
    stacks = columns.take(EVENT_STACK, "I")
    if numbers != list(range(len(numbers))):
        stacks = array("I", map(numbers.__getitem__, stacks))
    times = columns.take(EVENT_TIME, "q")
    words = columns.take(EVENT_NOTE, "I")
    said = {number: texts[number] for number in set(words)} if columns.has_notes else {}
    streams = columns.take(STREAM_NUMBERS, "Q")
    found = []
    for first, count in spans:
        part = slice(first, first + count)
        own = events if count == len(events) else events.part(part)
        own.actions, own.streams = actions, list(streams)
        own.pools = [None, *pools]
        whole = count == len(events)
        notes = tuple(map(said.__getitem__, words[part])) if said else ()
        found.append(
            Trace(
                own,
                stacks if whole else stacks[part],
                times if whole else times[part],
                notes if any(notes) else (),
            )
        )
    return found


def _segments(
    columns: _Columns,
    texts: _Texts,
    numbers: Sequence[int],
    pools: Sequence[PoolId],
    span: tuple[int, int],
) -> list[tuple[int, Segment]]:
    """Return the segments, each with the number of its card."""
    rows, blocks = columns.take(SEGMENT_ROWS, "Q"), columns.take(BLOCK_ROWS, "Q")
    states = {number: texts[number] for number in set(blocks[4::6])}
    found = []
    for at in range(9 * span[0], 9 * sum(span), 9):
        device, address, size, stream, kind, expandable, pool, first, count = rows[at : at + 9]
        pieces, behind = [], address
        for row in range(6 * first, 6 * (first + count), 6):
            placed, own, block, requested, state, stack = blocks[row : row + 6]
            start = own if placed else behind
            pieces.append(Piece(start, block, requested, states[state], numbers[stack]))
            behind = start + block
        segment = Segment(
            address,
            size,
            stream,
            size == SMALL_SEGMENT if kind == 0 else kind == 1,
            bool(expandable),
            pools[pool - 1] if pool else NO_POOL,
            tuple(pieces),
        )
        found.append((device, segment))
    return found


def _annotations(columns: _Columns, texts: _Texts, span: tuple[int, int]) -> tuple[Annotation, ...]:
    rows = columns.take(NOTE_ROWS, "Q")[4 * span[0] : 4 * sum(span)]
    several = zip(rows[::4], rows[1::4], rows[2::4], rows[3::4], strict=True)
    return tuple(
        Annotation(texts[stage], texts[name], device, time)
        for stage, name, device, time in several
        if 0 < time < 1 << 63
    )
