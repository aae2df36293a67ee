"""Which rank and machine a log's name gives it, by itself or beside its siblings.

```
rank_3.log   rank3.out   log-r03.txt   node1_gpu2.log   worker-0.txt   slurm-123-7.out
<id>/attempt_0/3/stderr.log (torchrun --log-dir)       1/rank.3/stdout, 1.3/stdout (mpirun)
job-worker-2 (Kubernetes; with a master that one is rank 0)       train.log.1 (rotated, older)
```
A number behind the word rank speaks for itself. Any other number counts only where siblings that
are named alike have other numbers; `slurm-123_4.out` is task 4 of an array: a job of its own.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MOST_RANKS = 16384
_DEPTH = 4
_PACKED = (".gz", ".bz2", ".xz", ".zst")
_STREAMS = ("stdout", "stderr", "out", "err")


class NameRank(NamedTuple):
    """The rank and machine that a name gives; `sure` where the name needs no siblings."""

    rank: int | None = None
    node: str | None = None
    sure: bool = False


class _Guess(NamedTuple):
    """A number in a name, and the name with that number taken out."""

    number: int
    template: tuple[str, ...]
    master: bool = False


def name_ranks(paths: Iterable[str]) -> Mapping[str, NameRank]:
    """Return what the names of `paths` say, each beside the others."""
    parts = {path: parts_of(path) for path in dict.fromkeys(paths)}
    found: dict[str, NameRank] = {}
    guesses: dict[tuple[str, ...], dict[str, _Guess]] = {}
    for path, names in parts.items():
        node = _node_of(names)
        sure = _sure_rank(names)
        if sure is not None:
            found[path] = NameRank(sure, node, sure=True)
            continue
        found[path] = NameRank(None, node)
        for guess in _guesses(names):
            guesses.setdefault(guess.template, {})[path] = guess
    for family in guesses.values():
        for path, rank in _ranks_of(family).items():
            if found[path].rank is None:
                found[path] = found[path]._replace(rank=rank)
    return _with_nodes(found, parts)


def parts_of(path: str) -> tuple[str, ...]:
    """Return the last names of a path, without packing and without the number of a rotation."""
    names = [name for name in re.split(r"[/\\]+", path) if name not in ("", ".", "..")]
    if not names:
        return ()
    return (*names[-_DEPTH:-1], _rotation().sub(r"\1", unpacked(names[-1])))


def rotation_of(path: str) -> int:
    """Return how often a log was rotated: `train.log.2` is older than `train.log.1`."""
    found = _rotation().search(unpacked(path))
    return int(found[2]) if found else 0


def unpacked(name: str) -> str:
    """Return a name without the suffix of a compression."""
    for suffix in _PACKED:
        name = name.removesuffix(suffix)
    return name


def _sure_rank(names: Sequence[str]) -> int | None:
    """Return the rank that the word rank, or the place in a launcher's tree, gives."""
    for at in range(len(names) - 1, -1, -1):
        found = _named().search(names[at])
        if found is not None:
            return int(found[1])
        inside = at < len(names) - 1
        is_place = inside and at > 0 and names[at - 1].startswith("attempt_")
        if is_place and names[at].isdecimal() and len(names[at]) < 6:
            return int(names[at])
        if inside and names[-1].split(".")[0] in _STREAMS:
            placed = re.fullmatch(r"\d{1,4}\.(\d{1,5})", names[at])
            if placed is not None:
                return int(placed[1])
    return None


def _guesses(names: Sequence[str]) -> list[_Guess]:
    """Return the numbers that may be ranks, the most telling first."""
    found: list[_Guess] = []
    if not names or _array().search(names[-1]):
        return found
    for at in range(len(names) - 1, -1, -1):
        name = names[at]
        stem = name.split(".")[0]
        for pattern in (_worded(), _counted()):
            match = pattern.search(name)
            if match is None or int(match[1]) > MOST_RANKS:
                continue
            if pattern is _counted() and match.end(1) != len(stem):
                continue
            rest = (name[: match.start(1)] + "#" + name[match.end(1) :]).lower()
            if "node" in rest[: match.start(1)] and pattern is _counted():
                continue
            master = re.search(r"(?:master|chief|launcher)-?#", rest) is not None
            rest = _node().sub("@", re.sub(r"(?:master|chief)(?=-?#)", "worker", rest))
            template = (*_without_node(names[:at]), rest, *names[at + 1 :])
            found.append(_Guess(int(match[1]), _alike(template), master))
            break
    return found


def _alike(template: tuple[str, ...]) -> tuple[str, ...]:
    """Return the template with the two streams of a process taken for one."""
    return tuple(re.sub(r"\b(?:stdout|stderr|out|err)\b", "*", part) for part in template)


def _without_node(names: Sequence[str]) -> tuple[str, ...]:
    return tuple("@" if _node().search(name) else name for name in names)


def _ranks_of(family: Mapping[str, _Guess]) -> dict[str, int]:
    """Return ranks where several files of a family have several small numbers."""
    numbers = {guess.number for guess in family.values()}
    if len(numbers) < 2 or max(numbers) > 8 * len(numbers) + 64:
        return {}
    masters = any(guess.master for guess in family.values())
    return {
        path: guess.number if guess.master or not masters else guess.number + 1
        for path, guess in family.items()
    }


def _node_of(names: Sequence[str]) -> str | None:
    for name in reversed(names):
        found = _node().search(name)
        if found is not None:
            return found[1].lower()
    return None


def _with_nodes(
    found: Mapping[str, NameRank], parts: Mapping[str, tuple[str, ...]]
) -> dict[str, NameRank]:
    """Tell files of one rank apart by the folder in which they differ: a machine each."""
    groups: dict[tuple[int, str | None], list[str]] = {}
    for path, one in found.items():
        if one.rank is not None:
            groups.setdefault((one.rank, one.node), []).append(path)
    named = dict(found)
    for paths in groups.values():
        at = _differing([parts[path] for path in paths])
        if at is None:
            continue
        length = len(parts[paths[0]])
        for path, one in named.items():
            if one.rank is not None and one.node is None and len(parts[path]) == length:
                named[path] = one._replace(node=parts[path][at])
    return named


def _differing(rows: Sequence[tuple[str, ...]]) -> int | None:
    """Return the place of the one folder name in which paths differ, if they do."""
    if len(rows) < 2 or len({len(row) for row in rows}) > 1:
        return None
    for at in range(len(rows[0]) - 1):
        names = {row[at] for row in rows}
        if len(names) > 1 and not any(name.startswith("attempt") for name in names):
            return None if names & set(_STREAMS) else at
    return None


@cache
def _named() -> re.Pattern[str]:
    return re.compile(r"(?i)(?<![a-z])(?:global|local)?[-_]?rank[-_. =]{0,2}0*(\d{1,5})(?!\d)")


@cache
def _worded() -> re.Pattern[str]:
    return re.compile(
        r"(?i)(?<![a-z])(?:r|gpu|cuda|worker|process|proc|task|device|trainer|master|chief|p|w)"
        r"[-_.]{0,2}0*(\d{1,5})(?!\d)"
    )


@cache
def _counted() -> re.Pattern[str]:
    return re.compile(r"(?:^|[-_.])0*(\d{1,5})(?=\.|$)")


@cache
def _node() -> re.Pattern[str]:
    return re.compile(
        r"(?i)(?<![a-z])((?:node|host|machine|nid|server|pod)[-_]?(?:[a-z]|\d{1,6}))(?![a-z\d])"
    )


@cache
def _array() -> re.Pattern[str]:
    return re.compile(r"slurm-\d+_\d+")


@cache
def _rotation() -> re.Pattern[str]:
    return re.compile(r"(\.(?:log|out|err|txt))\.(\d{1,3})$")
