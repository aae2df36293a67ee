"""Large inputs read side by side in processes of their own, as many as there are cores.

A process that dies (main memory is short, perhaps for the same reason as in the log) costs the
file that it was reading, and no other.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location
from oomdoctor.evidence.hearing import hush
from oomdoctor.reading import FileReading, read_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from oomdoctor.evidence.source import Progress

    Outcome = FileReading | InputError

MOST_WORKERS = 16


def read_side_by_side(
    sizes: Mapping[str, int], *, most_text: int, progress: Progress | None = None
) -> Mapping[str, Outcome]:
    """Read all paths, whose sizes are given; what cannot be read comes back as the error."""
    paths = list(sizes)
    total = sum(sizes.values())
    done = 0

    def told(path: str) -> None:
        nonlocal done
        done += sizes[path]
        if progress is not None:
            progress(done, total)

    outcomes = _read(paths, workers=_workers(len(paths)), most_text=most_text, told=told)
    lost = [path for path in paths if path not in outcomes]
    for path in lost:
        again = _read([path], workers=1, most_text=most_text)
        outcomes[path] = again.get(path) or InputError(
            "the process that read it died", location=Location(path=path)
        )
    return outcomes


def _read(
    paths: Sequence[str],
    *,
    workers: int,
    most_text: int,
    told: Callable[[str], None] | None = None,
) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    with ProcessPoolExecutor(max_workers=workers, initializer=hush) as pool:
        jobs = [(path, pool.submit(_read_one, path, most_text)) for path in paths]
        for path, job in jobs:
            outcome = _result(job)
            if outcome is not None:
                outcomes[path] = outcome
            if told is not None:
                told(path)
    return outcomes


def _result(job: Future[Outcome]) -> Outcome | None:
    try:
        return job.result()
    except (BrokenProcessPool, MemoryError, OSError):
        return None


def _read_one(path: str, most_text: int) -> Outcome:
    """Read one path in a process of its own; an error of the input is an outcome as well."""
    try:
        return read_path(path, most_text=most_text)
    except InputError as fault:
        return fault


def _workers(files: int) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(files, cores or 1, MOST_WORKERS))
