"""Blocks of numbered lines, in which no line is longer than a line may be.

A progress bar that wrote carriage returns for days is one line of many megabytes: it is parted at
its carriage returns into several of the same number. A line without any keeps its head, its tail
and what surrounds the first literal of a failure in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_BYTES = 64 * 1024
_PARTED = 32 * 1024
_PIECE = 24 * 1024
_AROUND = 4 * 1024
_JOIN = b" [...] "


class Block(NamedTuple):
    """Lines of an input: number of the first one, line feeds among them, and their bytes."""

    first_line: int
    lines: int
    data: bytes


def blocks_of(data: bytes, *, first_line: int) -> tuple[list[Block], list[int]]:
    """Return `data` in blocks, and the numbers of the lines of which something was cut out."""
    blocks: list[Block] = []
    cut: list[int] = []
    line = first_line
    start = 0
    for at, end in _long_lines(data):
        if at > start:
            block = _block(line, data[start:at])
            blocks.append(block)
            line += block.lines
        parts, whole = _parts(data[at:end])
        blocks.extend(Block(line, 0, part) for part in parts)
        if end < len(data):
            blocks[-1] = Block(line, 1, parts[-1] + b"\n")
        if not whole:
            cut.append(line)
        start = end + 1
        line += 1
    if start < len(data):
        blocks.append(_block(line, data[start:]))
    return blocks, cut


def _block(line: int, data: bytes) -> Block:
    return Block(line, data.count(b"\n"), data)


def _long_lines(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the lines start and end that are longer than a line may be."""
    position = 0
    while len(data) - position > LINE_BYTES:
        end = data.rfind(b"\n", position, position + LINE_BYTES + 1)
        if end >= 0:
            position = end + 1
            continue
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        yield position, end
        position = end + 1


def _parts(line: bytes) -> tuple[list[bytes], bool]:
    """Part a long line at carriage returns; a part that has none is cut: then it is not whole."""
    parts: list[bytes] = []
    whole = True
    start = 0
    while start < len(line):
        end = len(line)
        if end - start > _PARTED:
            end = line.rfind(b"\r", start + 1, start + _PARTED)
            end = end if end >= 0 else line.find(b"\r", start + 1)
            end = end if end >= 0 else len(line)
        part = line[start:end]
        if len(part) > LINE_BYTES:
            whole = False
            part = _cut(part)
        parts.append(part)
        start = end
    return parts, whole


def _cut(part: bytes) -> bytes:
    """Keep the head, the tail, and what surrounds the first literal of a failure between them."""
    from oomdoctor.evidence.sieve import strong_in

    pieces = [part[:_PIECE], part[-_PIECE:]]
    between = part[_PIECE - _AROUND : -_PIECE + _AROUND]
    at = strong_in(between)
    if at is not None:
        pieces.insert(1, between[max(0, at - _AROUND) : at + _AROUND])
    return _JOIN.join(whole_characters(piece) for piece in pieces)


def whole_characters(piece: bytes) -> bytes:
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
