"""A piece of the data that a process of its own can read: plain values, sent as they are.

span    bytes 4194304 to 8388608 of train.jsonl: the lines that start there
block   lines that were read already (standard input, a compressed file)
texts   objects cut out of a JSON array, each with the line where it starts
table   rows of a parquet or arrow file
"""

from __future__ import annotations

from oomdoctor.record import NamedTuple

PIECE_BYTES = 4 * 1024**2


class Span(NamedTuple):
    """The lines of a plain file that start in `start:end`; their numbers are not known yet."""

    name: str
    path: str
    start: int
    end: int
    as_json: bool


class Block(NamedTuple):
    """Whole lines, the first of which has the number `first`."""

    name: str
    first: int
    data: bytes
    as_json: bool
    size: int


class Texts(NamedTuple):
    """JSON texts of single rows with the numbers of the lines where they start."""

    name: str
    rows: tuple[tuple[int, str], ...]
    size: int


class Table(NamedTuple):
    """Rows as an arrow stream of their own, the first of which has the number `first`.

    A slice of a batch would take the whole batch with it to another process.
    """

    name: str
    first: int
    data: bytes
    size: int


Piece = Span | Block | Texts | Table


def size_of(piece: Piece) -> int:
    """Return how many bytes of its file a piece stands for."""
    return piece.end - piece.start if isinstance(piece, Span) else piece.size
