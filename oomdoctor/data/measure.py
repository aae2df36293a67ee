"""Count whole files, piece by piece, in as many processes as there are cores."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from typing import TYPE_CHECKING

from oomdoctor.data.cutting import pieces_of
from oomdoctor.data.pieces import PIECE_BYTES, Span, size_of
from oomdoctor.data.tally import Tally
from oomdoctor.data.work import alone, count_piece, machine_of
from oomdoctor.errors import OomdoctorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from typing import BinaryIO

    from oomdoctor.data.files import DataFile
    from oomdoctor.data.pieces import Piece
    from oomdoctor.data.work import Setup

    Progress = Callable[[int, int | None], None]
    Counted = tuple[Piece, Tally]

MOST_PROCESSES = 16
AHEAD = 3
"""Pieces per process that are cut in advance; more would be held in memory."""
SMALL_BYTES = PIECE_BYTES // 2


def count_files(
    files: Sequence[DataFile],
    setup: Setup,
    *,
    processes: int | None = None,
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Return what all files come to; `progress` is told the bytes done of how many."""
    machine_of(setup)  # errors of the tokenizer come before anything is read
    known = sum(file.size for file in files)
    total = known if all(file.size for file in files) else None
    pieces = chain.from_iterable(pieces_of(file, field=setup.field, stdin=stdin) for file in files)
    workers = processes or cores()
    small = total is not None and total <= SMALL_BYTES
    counted = _here(pieces, setup) if workers == 1 or small else _aside(pieces, setup, workers)
    return _joined(counted, total, progress)


def _joined(counted: Iterable[Counted], total: int | None, progress: Progress | None) -> Tally:
    whole = Tally()
    lines: dict[str, int] = {}
    done = 0
    for piece, tally in counted:
        if isinstance(piece, Span):
            before = lines.get(piece.name, 0)
            tally.moved(before)
            lines[piece.name] = before + tally.lines
        whole.add(tally)
        done += size_of(piece)
        if progress is not None:
            progress(done, total)
    return whole


def _here(pieces: Iterable[Piece], setup: Setup) -> Iterator[Counted]:
    for piece in pieces:
        yield piece, count_piece(piece, setup)


def _aside(pieces: Iterable[Piece], setup: Setup, workers: int) -> Iterator[Counted]:
    """Count pieces in processes of their own, in order, with few of them under way."""
    pending: deque[tuple[Piece, Future[Tally]]] = deque()
    pool = ProcessPoolExecutor(max_workers=workers, initializer=alone)
    try:
        for piece in pieces:
            pending.append((piece, pool.submit(count_piece, piece, setup)))
            if len(pending) >= AHEAD * workers:
                yield _first(pending)
        while pending:
            yield _first(pending)
    except BrokenProcessPool as error:
        raise OomdoctorError(
            "a process that counted tokens died",
            hint="main memory may be short: --processes 1 needs least",
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _first(pending: deque[tuple[Piece, Future[Tally]]]) -> Counted:
    piece, job = pending.popleft()
    return piece, job.result()


def cores() -> int:
    """Return how many processes pay on this machine."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(there or 1, MOST_PROCESSES))
