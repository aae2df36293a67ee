"""Blocks of whole lines out of a byte stream, bounded however large the input or a line is.

An input of up to 2 MiB is kept whole. Of a larger one the head, the tail and what surrounds the
literals of failures stay, with true line numbers; the rest is only counted. Of each literal the
first places and the last ones are kept: neither a hundred thousand survived failures before the
fatal one nor as many after it hide it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from oomdoctor.evidence.encoding import decode
from oomdoctor.evidence.long_lines import blocks_of
from oomdoctor.record import NamedTuple
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from oomdoctor.evidence.long_lines import Block
    from oomdoctor.evidence.sifter import Piece

BLOCK_BYTES = 256 * 1024
WHOLE_BYTES = 2 * 1024 * 1024


class Kept(NamedTuple):
    """What was kept of an input, and how many bytes, line feeds and over-long lines it had."""

    blocks: tuple[Block, ...]
    total_bytes: int
    total_lines: int
    cut_lines: tuple[int, ...]
    whole: bool = True


def keep(
    chunks: Iterable[bytes],
    *,
    whole_bytes: int = WHOLE_BYTES,
    progress: Callable[[int], None] | None = None,
) -> Kept:
    """Read `chunks` to the end and keep them whole, or what matters of more than `whole_bytes`."""
    even = _even(chunks)
    held: list[bytes] = []
    size = 0
    for chunk in even:
        held.append(chunk)
        size += len(chunk)
        if size > whole_bytes:
            break
    else:
        return _whole(b"".join(held))
    from oomdoctor.evidence.sifter import Sifter

    sifter = Sifter()
    for chunk in chain(_emptied(held), even):
        sifter.feed(chunk)
        if progress is not None:
            progress(len(chunk))
    sifter.finish()
    return kept_of(sifter.pieces(), total_bytes=sifter.position, total_lines=sifter.lines)


def kept_of(pieces: Iterable[Piece], *, total_bytes: int, total_lines: int) -> Kept:
    """Make blocks of the pieces that are worth their room."""
    from oomdoctor.evidence.sifter import chosen

    blocks: list[Block] = []
    cut: dict[int, None] = {}
    for piece in chosen(pieces):
        made, lines = blocks_of(piece.data, first_line=piece.line)
        blocks.extend(made)
        cut.update(dict.fromkeys(lines))
        if not piece.starts_line:
            cut[piece.line] = None
    return Kept(tuple(blocks), total_bytes, total_lines, tuple(cut), whole=False)


def _whole(data: bytes) -> Kept:
    blocks, cut = blocks_of(data, first_line=1)
    return Kept(tuple(blocks), len(data), data.count(b"\n"), tuple(cut))


def _even(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield chunks of at least `BLOCK_BYTES`, the last one aside."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= BLOCK_BYTES:
            joined = chunk if len(held) == 1 else b"".join(held)
            held.clear()
            size = 0
            for start in range(0, len(joined), 2 * BLOCK_BYTES):
                yield joined[start : start + 2 * BLOCK_BYTES]
    if held:
        yield b"".join(held)


def _emptied(held: list[bytes]) -> Iterator[bytes]:
    """Yield what is held, and hold it no longer."""
    held.reverse()
    while held:
        yield held.pop()


def numbered_lines(kept: Kept) -> tuple[tuple[tuple[int, str], ...], tuple[str, ...]]:
    """Decode the blocks to numbered lines; also return what had to be replaced."""
    numbered: list[tuple[int, str]] = []
    notes: dict[str, None] = {}
    for block in kept.blocks:
        text, note = decode(block.data)
        if note is not None:
            notes[note] = None
        if "\x00" in text:
            text = text.replace("\x00", "")
            notes["NUL bytes were dropped"] = None
        numbered.extend(enumerate(_split(text, block), start=block.first_line))
    return without_last(tuple(numbered)), tuple(notes)


def _split(text: str, block: Block) -> list[str]:
    lines = text.split("\n")
    return lines[: block.lines] if text.endswith("\n") else lines


def without_last(lines: tuple[tuple[int, str], ...]) -> tuple[tuple[int, str], ...]:
    """Drop the empty line that a final line feed leaves behind."""
    return lines[:-1] if lines and not lines[-1][1] else lines


def notes_of(kept: Kept, *, name: str) -> Iterator[str]:
    """Tell what was cut or left out of the input `name`."""
    if kept.total_bytes == 0:
        yield f"{name}: the input is empty"
    held = sum(len(block.data) for block in kept.blocks)
    if kept.cut_lines:
        listed = ", ".join(str(line) for line in kept.cut_lines[:5])
        more = "" if len(kept.cut_lines) <= 5 else f" and {len(kept.cut_lines) - 5} more"
        yield f"{name}: over-long lines were cut: line {listed}{more}"
    lines = sum(block.lines for block in kept.blocks)
    if not kept.whole:
        yield (
            f"{name}: {format_size(kept.total_bytes)} are too much to hold: read"
            f" {format_size(held)} (head, tail and around signs of failure),"
            f" skipped {format_count(max(0, kept.total_lines - lines))} lines"
        )
