"""A file of hundreds of megabytes, sifted by two processes at once: each takes half of it.

The child is a fork: nothing is imported twice, and it hands its pieces back through a pipe. Where
forking is not to be had (Windows, a program with threads, one core), the parent does it all.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from oomdoctor.evidence.blocks import BLOCK_BYTES, Kept, kept_of
from oomdoctor.evidence.sifter import FIRST_BYTES, STRONG_AFTER, Piece, Sifter

if TYPE_CHECKING:
    from collections.abc import Callable


def may_halve() -> bool:
    """Say whether a second process can be had: a fork, a core for it, and no other threads."""
    if not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2:
        return False
    threading = sys.modules.get("threading")
    return threading is None or threading.active_count() == 1


def keep_halves(number: int, *, size: int, progress: Callable[[int], None] | None = None) -> Kept:
    """Keep what matters of the file with the descriptor `number`, as `blocks.keep` does.

    What is appended meanwhile is read as well.
    """
    middle = size // 2
    child = _Child(number, middle)

    def twice(count: int) -> None:
        if progress is not None:
            progress(2 * count)

    first = _sifted(number, 0, middle, progress=twice)
    second = child.result()
    if second is None:
        second = _result(_sifted(number, middle, None))
    pieces = [*first.pieces(), *(one._replace(line=one.line + first.lines) for one in second[2])]
    return kept_of(pieces, total_bytes=second[0], total_lines=first.lines + second[1])


_Result = tuple[int, int, list[Piece]]


def _result(sifter: Sifter) -> _Result:
    return sifter.position, sifter.lines, sifter.pieces()


def _sifted(
    number: int,
    start: int,
    stop: int | None,
    *,
    progress: Callable[[int], None] | None = None,
) -> Sifter:
    """Sift a file's bytes from `start` to `stop`, or to its end."""
    context = min(FIRST_BYTES, start)
    before = os.pread(number, context, start - context)
    sifter = Sifter(offset=start, before=before, head=start == 0)
    at = start
    while stop is None or at < stop:
        size = BLOCK_BYTES if stop is None else min(BLOCK_BYTES, stop - at)
        chunk = os.pread(number, size, at)
        if not chunk:
            break
        sifter.feed(chunk)
        at += len(chunk)
        if progress is not None:
            progress(len(chunk))
    after = b"" if stop is None else os.pread(number, STRONG_AFTER, at)
    sifter.finish(after=after, tail=stop is None)
    return sifter


class _Child:
    """The process that sifts the second half."""

    def __init__(self, number: int, start: int) -> None:
        self._pipe, writing = os.pipe()
        try:
            self._process = os.fork()
        except OSError:
            self._process = -1
        if self._process == 0:
            self._work(number, start, writing)
        os.close(writing)

    def _work(self, number: int, start: int, writing: int) -> None:
        """Sift, write what came of it, and end without anything that an interpreter does then."""
        status = 1
        try:
            position, lines, pieces = _result(_sifted(number, start, None))
            heads = [
                [one.offset, one.line, len(one.data), one.rank, one.starts_line] for one in pieces
            ]
            header = json.dumps([position, lines, heads]).encode() + b"\n"
            with os.fdopen(writing, "wb") as out:
                out.write(header)
                out.writelines(one.data for one in pieces)
            status = 0
        finally:
            os._exit(status)

    def result(self) -> _Result | None:
        """Return what the child found; nothing where it did not come to an end."""
        with os.fdopen(self._pipe, "rb") as told:
            header = told.readline()
            body = told.read()
        if self._process < 0 or os.waitpid(self._process, 0)[1] != 0:
            return None
        position, lines, heads = json.loads(header)
        pieces = []
        start = 0
        for offset, line, size, rank, starts in heads:
            data = body[start : start + size]
            pieces.append(Piece(offset, line, data, rank=rank, starts_line=starts))
            start += size
        return position, lines, pieces
