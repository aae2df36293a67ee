"""Count one piece: what a process of its own does, again and again."""

from __future__ import annotations

import json
import os
import signal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.data.counting import BATCH_CHARACTERS, Counter
from oomdoctor.data.layouts import BadRowError, Sample, sample_of
from oomdoctor.data.pieces import Block, Piece, Span, Texts
from oomdoctor.data.tally import Fault, Place, Tally
from oomdoctor.data.tokenizer import load
from oomdoctor.extras import need
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from oomdoctor.data.layouts import Render

LONGEST_LINE = 64 * 1024**2
_TOO_LONG = "a line of more than 64 MiB"


class Setup(NamedTuple):
    """How rows are counted: the tokenizer's path, a field that was named, the template or not."""

    tokenizer: str
    field: str | None = None
    template: bool = True


class _Machine(NamedTuple):
    counter: Counter
    render: Render | None


@cache
def machine_of(setup: Setup) -> _Machine:
    """Return what counts with this setup; made once in each process."""
    tokens = load(setup.tokenizer)
    return _Machine(Counter(tokens), tokens.render() if setup.template else None)


def alone() -> None:
    """Prepare a process of its own: one thread, and Ctrl-C is the parent's affair."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def count_piece(piece: Piece, setup: Setup) -> Tally:
    """Return what a piece comes to; a row that cannot be counted is a fault, never an error."""
    tally = Tally()
    counter, render = machine_of(setup)
    held: list[tuple[int, Sample]] = []
    size = 0
    for line, row in _rows(piece, tally):
        try:
            sample = sample_of(
                _parsed(row) if isinstance(row, bytes) else row, render=render, field=setup.field
            )
        except BadRowError as reason:
            tally.add_fault(Fault(piece.name, line, str(reason)))
            continue
        held.append((line, sample))
        size += sum(map(len, sample.texts))
        if size >= BATCH_CHARACTERS:
            _settle(held, piece.name, counter, tally)
            held, size = [], 0
    _settle(held, piece.name, counter, tally)
    return tally


def _settle(held: list[tuple[int, Sample]], name: str, counter: Counter, tally: Tally) -> None:
    """Count the texts that were held back, those of one kind together."""
    counts: dict[bool, Iterator[int]] = {}
    for special in (True, False):
        texts = [text for _, one in held if one.special is special for text in one.texts]
        counts[special] = iter(counter.count(texts, special=special) if texts else ())
    for line, one in held:
        places = [
            Place(name, line, next(counts[one.special]), len(text), one.layout)
            for text in one.texts
        ]
        places += (Place(name, line, tokens, 0, one.layout) for tokens in one.lengths)
        if any(place.tokens for place in places):
            tally.add_row(places, layout=one.layout, pictures=one.pictures)
        else:
            tally.add_fault(Fault(name, line, "no tokens in it"))


def _rows(piece: Piece, tally: Tally) -> Iterator[tuple[int, object]]:
    """Yield (number, row); a row of bytes has yet to be parsed."""
    if isinstance(piece, Texts):
        for line, text in piece.rows:
            yield line, json.loads(text)
        tally.lines = piece.rows[-1][0]
    elif isinstance(piece, Span):
        yield from _line_rows(piece, tally, 1, _span_lines(piece))
    elif isinstance(piece, Block):
        yield from _line_rows(piece, tally, piece.first, piece.data.split(b"\n"))
    else:
        arrow = need("pyarrow", purpose="a table", extra="data")
        rows = arrow.ipc.open_stream(piece.data).read_all().to_pylist()
        for number, row in enumerate(rows, piece.first):
            tally.lines += 1
            yield number, row


def _line_rows(
    piece: Span | Block, tally: Tally, first: int, lines: Iterable[bytes]
) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(lines, first):
        tally.lines += 1
        if len(line) > LONGEST_LINE:
            tally.add_fault(Fault(piece.name, number, _TOO_LONG))
        elif stripped := line.strip():
            yield number, stripped if piece.as_json else stripped.decode("utf-8", "replace")


def _span_lines(span: Span) -> Iterator[bytes]:
    """Yield the lines that start inside the span; one that is too long comes cut."""
    with Path(span.path).open("rb") as file:
        if span.start:
            file.seek(span.start - 1)
            _to_line_end(file)
        else:
            file.seek(3 if file.read(3) == b"\xef\xbb\xbf" else 0)
        while file.tell() < span.end:
            line = file.readline(LONGEST_LINE + 1)
            if not line:
                return
            if not line.endswith(b"\n"):
                _to_line_end(file)
            yield line


def _to_line_end(file: BinaryIO) -> None:
    while chunk := file.readline(1024**2):
        if chunk.endswith(b"\n"):
            return


def _parsed(row: bytes) -> object:
    try:
        return json.loads(row)
    except UnicodeDecodeError:
        raise BadRowError("not UTF-8") from None
    except ValueError:
        raise BadRowError("not JSON") from None
    except RecursionError:
        raise BadRowError("nested too deep") from None
