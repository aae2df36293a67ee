"""Which files are one job: all of them where that is said, else those that name each other."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from oomdoctor.linting.files import LintFile, read_file
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Job(NamedTuple):
    """The files of one job, the one that names the others first."""

    files: tuple[LintFile, ...]


def jobs_of(files: Sequence[LintFile], *, together: bool, follow: bool = True) -> tuple[Job, ...]:
    """Group files into jobs; `follow` also reads files that a given one names."""
    if together:
        return (Job(tuple(files)),) if files else ()
    held = {file.path: file for file in files}
    real = {os.path.realpath(path): path for path in held}
    named: dict[str, tuple[str, ...]] = {}
    for file in files:
        named[file.path] = _names_of(file, held, real, follow=follow)
    inner = {path for paths in named.values() for path in paths}
    jobs = [_job(file.path, held, named) for file in files if file.path not in inner]
    placed = {file.path for job in jobs for file in job.files}
    for file in files:  # those left name each other in a circle
        if file.path not in placed:
            jobs.append(_job(file.path, held, named))
            placed |= {one.path for one in jobs[-1].files}
    return tuple(jobs)


def _job(path: str, held: dict[str, LintFile], named: dict[str, tuple[str, ...]]) -> Job:
    order: dict[str, LintFile] = {}
    waiting = [path]
    while waiting:
        at = waiting.pop(0)
        if at not in order and at in held:
            order[at] = held[at]
            waiting += named.get(at, ())
    return Job(tuple(order.values()))


def _names_of(
    file: LintFile, held: dict[str, LintFile], real: dict[str, str], *, follow: bool
) -> tuple[str, ...]:
    """Return the paths of the files that a file names; those not given are read and `held`."""
    from oomdoctor.configs.links import linked

    found: dict[str, None] = {}
    for path in linked(file.readings):
        given = real.get(os.path.realpath(path))
        if given is not None and given != file.path:
            found[given] = None
        elif given is None and follow:
            other = read_file(path)
            if other.fault is None and other.dialect is not None:
                held[path] = other
                real[os.path.realpath(path)] = path
                found[path] = None
    return tuple(found)
