"""Cut files into pieces that are read side by side; nothing larger than a piece is held."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from oomdoctor.data.files import STDIN, DataFile
from oomdoctor.data.json_array import rows_of_array
from oomdoctor.data.layouts import FIELDS
from oomdoctor.data.pieces import PIECE_BYTES, Block, Piece, Span, Table, Texts
from oomdoctor.errors import InputError, Location
from oomdoctor.evidence.compressed import Damaged, UnsupportedError, decompress
from oomdoctor.extras import Library, need

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

READ_BYTES = 256 * 1024
TABLE_ROWS = 512
UNPACKED_LIMIT_BYTES = 1 << 62


def pieces_of(file: DataFile, *, field: str | None, stdin: BinaryIO | None) -> Iterator[Piece]:
    """Yield the pieces of a file in order."""
    if file.path == STDIN:
        stream = stdin or sys.stdin.buffer
        yield from _blocks("<stdin>", _chunks(stream), as_json=None, share=1.0)
    elif file.packed is not None:
        yield from _unpacked(file, file.packed)
    elif file.kind in ("lines", "text"):
        yield from _spans(file)
    elif file.kind == "json":
        yield from _texts(file)
    else:
        yield from _tables(file, field)


def _spans(file: DataFile) -> Iterator[Span]:
    for start in range(0, file.size, PIECE_BYTES):
        end = min(start + PIECE_BYTES, file.size)
        yield Span(file.path, file.path, start, end, file.kind == "lines")


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(READ_BYTES):
        yield chunk


def _unpacked(file: DataFile, packed: str) -> Iterator[Block]:
    with Path(file.path).open("rb") as stream:
        read = 0

        def told() -> Iterator[bytes]:
            nonlocal read
            for chunk in _chunks(stream):
                read += len(chunk)
                yield chunk

        chunks = decompress(told(), packed, limit_bytes=UNPACKED_LIMIT_BYTES)
        before = 0
        try:
            for block in _blocks(file.path, chunks, as_json=file.kind == "lines", share=0.0):
                yield block._replace(size=read - before)
                before = read
        except (Damaged, UnsupportedError) as error:
            raise InputError(str(error), location=Location(path=file.path)) from error


def _blocks(
    name: str, chunks: Iterable[bytes], *, as_json: bool | None, share: float
) -> Iterator[Block]:
    """Yield blocks of whole lines; what a stream holds is told by its first sign."""
    held: list[bytes] = []
    size, first = 0, 1
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        at = chunk.rfind(b"\n")
        if size < PIECE_BYTES or at < 0:
            continue
        rest = chunk[at + 1 :]
        held[-1] = chunk[: at + 1]
        data = b"".join(held)
        as_json = data.lstrip()[:1] == b"{" if as_json is None else as_json
        yield Block(name, first, data, as_json, int(share * len(data)))
        first += data.count(b"\n")
        held, size = [rest], len(rest)
    data = b"".join(held)
    as_json = data.lstrip()[:1] == b"{" if as_json is None else as_json
    if data:
        yield Block(name, first, data, as_json, int(share * len(data)))


def _texts(file: DataFile) -> Iterator[Texts]:
    rows: list[tuple[int, str]] = []
    size = 0
    for line, text in rows_of_array(file.path):
        rows.append((line, text))
        size += len(text)
        if size >= PIECE_BYTES:
            yield Texts(file.path, tuple(rows), size)
            rows, size = [], 0
    if rows:
        yield Texts(file.path, tuple(rows), size)


def _tables(file: DataFile, field: str | None) -> Iterator[Table]:
    arrow = need("pyarrow", purpose=f"a {file.kind} file", extra="data")
    try:
        read = _parquet(file, field) if file.kind == "parquet" else _arrow(file, field)
        first, told = 1, 0
        each = _row_bytes(file)
        for batch in read:
            rows = _rows_of_piece(batch.num_rows, batch.nbytes)
            for start in range(0, batch.num_rows, rows):
                part = batch.slice(start, rows)
                size = min(int(each * part.num_rows) or part.nbytes, file.size - told)
                told += size
                yield Table(file.path, first, _stream(part), size)
                first += part.num_rows
    except (arrow.ArrowException, OSError) as error:
        raise InputError(
            f"cannot be read as {file.kind}: {error}", location=Location(path=file.path)
        ) from error


def _row_bytes(file: DataFile) -> float:
    """Return the bytes of its file that a row stands for where it is compressed, else 0."""
    if file.kind != "parquet":
        return 0.0
    parquet = need("pyarrow.parquet", purpose="a parquet file", extra="data")
    return float(file.size / max(parquet.read_metadata(file.path).num_rows, 1))


def _rows_of_piece(rows: int, size: int) -> int:
    """Return how many rows of a batch make a piece: not too many, and not too large together."""
    fitting = rows * PIECE_BYTES // size if size else rows
    return max(1, min(TABLE_ROWS, fitting))


def _stream(batch: Library) -> bytes:
    arrow = need("pyarrow", purpose="a table", extra="data")
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _wanted(names: Iterable[str], field: str | None) -> list[str]:
    """Return the columns that a layout may look at, all where none is known."""
    listed = list(names)
    if field is not None:
        return [field] if field in listed else listed
    return [name for name in listed if name in FIELDS] or listed


def _parquet(file: DataFile, field: str | None) -> Iterator[Library]:
    parquet = need("pyarrow.parquet", purpose="a parquet file", extra="data")
    with parquet.ParquetFile(file.path, pre_buffer=False) as opened:
        columns = _wanted(opened.schema_arrow.names, field)
        yield from opened.iter_batches(TABLE_ROWS, columns=columns, use_threads=False)


def _arrow(file: DataFile, field: str | None) -> Iterator[Library]:
    """Yield the batches of a stream, or of a file with its index at the end."""
    arrow = need("pyarrow", purpose="an arrow file", extra="data")
    with arrow.OSFile(file.path, "rb") as opened:
        if opened.read(6) == b"ARROW1":
            reader = arrow.ipc.open_file(opened)
            batches = (reader.get_batch(at) for at in range(reader.num_record_batches))
        else:
            opened.seek(0)
            reader = arrow.ipc.open_stream(opened)
            batches = iter(reader)
        columns = _wanted(reader.schema.names, field)
        for batch in batches:
            yield batch.select(columns)
