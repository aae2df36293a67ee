"""How well sequences fill rows of a given length: best-fit decreasing, and wrapped.

Best-fit decreasing takes the longest sequence first and puts it where the least room is left. On a
histogram that is done for all sequences of one length together, with the very same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from oomdoctor.data.lengths import Lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """What packing into rows of `capacity` tokens gives.

    `cut_rows` are sequences that end in one row and go on in the next one, at most.
    """

    name: str
    capacity: int
    rows: int
    tokens: int
    cut_rows: int = 0

    @property
    def efficiency(self) -> float:
        """Return the share of the rows' tokens that are real."""
        return self.tokens / (self.rows * self.capacity) if self.rows else 0.0


def best_fit(lengths: Lengths, capacity: int) -> Packing:
    """Pack whole sequences, those that are too long cut at the capacity."""
    cut = lengths.cut_at(capacity)
    rooms: dict[int, int] = {}  # rows by the room that is left in them
    there = 0  # a bit for each room that some row has
    rows = 0
    for length, number in reversed(cut.items):
        count = number
        if length == 0:
            continue
        while count:
            least = there >> length
            if least:
                room = length + (least & -least).bit_length() - 1
                bins = rooms[room]
            else:
                room, bins = capacity, -(-count // (capacity // length))
                rows += bins
                rooms[room] = bins
            count, there = _fill(rooms, there, room=room, bins=bins, length=length, count=count)
    return Packing(name="best fit", capacity=capacity, rows=rows, tokens=cut.tokens)


def _fill(
    rooms: dict[int, int], there: int, *, room: int, bins: int, length: int, count: int
) -> tuple[int, int]:
    """Put as many of `count` sequences as fit into the rows of one room, one row after another."""
    each = room // length
    full, rest = divmod(min(count, bins * each), each)
    used = full + (1 if rest else 0)
    rooms[room] = bins - used
    there = there | (1 << room) if rooms[room] else there & ~(1 << room)
    for left, number in ((room - each * length, full), (room - rest * length, 1 if rest else 0)):
        if number:
            rooms[left] = rooms.get(left, 0) + number
            there |= 1 << left
    return count - full * each - rest, there


def wrapped(lengths: Lengths, capacity: int) -> Packing:
    """Join all sequences and cut the whole every `capacity` tokens; nothing is lost."""
    rows = -(-lengths.tokens // capacity)
    return Packing(
        name="wrapped",
        capacity=capacity,
        rows=rows,
        tokens=lengths.tokens,
        cut_rows=min(max(rows - 1, 0), lengths.count),
    )
