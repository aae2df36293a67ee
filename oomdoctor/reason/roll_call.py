"""One line per rank: what failed first, what followed, whose log just ends, who is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.plan import RankSummary
from oomdoctor.reason import echo
from oomdoctor.reason.timeline import in_time, is_absurd, mark_consequences, value_of
from oomdoctor.record import NamedTuple, dataclass
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.evidence.launcher_table import Blamed
    from oomdoctor.model.core import Failure

_WORDS = {
    "gpu-oom": "GPU out of memory",
    "host-oom": "host memory exhausted or process killed",
    "shm": "shared memory too small",
    "assert": "device-side assertion",
    "illegal-access": "illegal memory access",
    "device-lost": "device lost",
    "collective": "collective operation failed",
    "size": "a size that cannot be meant",
    "peer": "a connection to another rank broke",
    "lost": "ended without a word",
    "other": "another failure",
}
_ENDINGS = {
    "terminated": "ended by SIGTERM",
    "killed": "killed",
    "interrupted": "interrupted",
    "finished": "finished",
    "": "no failure in its log, which just ends",
}
_SIGNALS = {
    -15: "ended by SIGTERM",
    -9: "killed (SIGKILL)",
    -6: "aborted",
    -7: "ended by SIGBUS",
    -11: "ended by SIGSEGV",
}
MOST_MISSING = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLog:
    """One log of one rank: where it stands, how it ends, and how its rank was found."""

    artifact: str
    rank: int | None = None
    node: str | None = None
    by: str = ""
    ending: str = ""
    last_stamp: str | None = None
    world: int | None = None
    blamed: tuple[Blamed, ...] = ()


class _Word(NamedTuple):
    """What is said of one rank."""

    headline: str
    failed: bool
    consequence: bool
    order: int
    stamp: str | None = None


class _Roll:
    """What is known of each rank, by machine and number."""

    def __init__(self) -> None:
        self.words: dict[tuple[str | None, int], _Word] = {}
        self.artifacts: dict[tuple[str | None, int], dict[str, None]] = {}

    def say(self, key: tuple[str | None, int], word: _Word, artifact: str) -> None:
        """Take the first word on a rank; later ones only add their input."""
        self.words.setdefault(key, word)
        self.artifacts.setdefault(key, {})[artifact] = None


def fold_ranks(
    failures: Sequence[Failure], logs: Sequence[RankLog] = (), first: Failure | None = None
) -> tuple[RankSummary, ...]:
    """Summarise what each rank showed; ranks that agree become one entry, the first one stays."""
    roll = _Roll()
    count = len(failures)
    after = "" if first is None or first.rank is None else f" after {_name(first)}"
    marked = mark_consequences(in_time(failures))
    if first is not None and first.rank is not None:
        roll.say((first.node, first.rank), _word_of(first, 0), first.line_quote.artifact)
    own = [failure for failure in marked if not failure.consequence]
    for at, failure in enumerate([*own, *(one for one in marked if one.consequence)], start=1):
        if failure.rank is not None:
            word = _word_of(failure, at, after)
            roll.say((failure.node, failure.rank), word, failure.line_quote.artifact)
    _add_blamed(roll, logs, count, after)
    _add_endings(roll, logs, count, after)
    _add_missing(roll, logs, count)
    leading = None if first is None or first.rank is None else (first.node, first.rank)
    return _folded(roll, leading)


def _word_of(failure: Failure, at: int, after: str = "") -> _Word:
    follows = failure.consequence
    words = _headline(failure)
    if follows:
        heard = echo.heard(failure)
        words = heard + after if heard else f"{words} (follows from an earlier failure)"
    return _Word(
        headline=words,
        failed=True,
        consequence=follows,
        order=at,
        stamp=failure.stamp or failure.near,
    )


def _add_blamed(roll: _Roll, logs: Sequence[RankLog], order: int, after: str) -> None:
    """Add ranks that only the launcher's table speaks of."""
    for log in logs:
        for entry in log.blamed:
            if any(rank == entry.rank for _, rank in roll.words):
                continue
            code = entry.exit_code
            words = _SIGNALS.get(code or 0, f"exit code {code}")
            follows = not entry.root and bool(after)
            word = _Word(
                headline=words + after * follows,
                failed=True,
                consequence=follows,
                order=order + 1,
                stamp=entry.stamp,
            )
            roll.say((None, entry.rank), word, log.artifact)


def _add_endings(roll: _Roll, logs: Sequence[RankLog], order: int, after: str) -> None:
    """Add ranks whose own log shows no failure."""
    for log in logs:
        if log.rank is None:
            continue
        stopped = log.ending in ("terminated", "killed")
        words = _ENDINGS[log.ending] + after * stopped
        word = _Word(
            headline=words,
            failed=stopped,
            consequence=stopped and bool(after),
            order=order + 2,
            stamp=log.last_stamp,
        )
        roll.say((log.node, log.rank), word, log.artifact)


def _add_missing(roll: _Roll, logs: Sequence[RankLog], order: int) -> None:
    """Add ranks that the job has and no input speaks of, where every rank has a log."""
    told = {log.rank for log in logs if log.rank is not None}
    world = max((log.world for log in logs if log.world is not None), default=0)
    nodes = {node for node, _ in roll.words}
    if len(told) < 2 or len(nodes) > 1 or not 1 < world <= MOST_MISSING:
        return
    known = {rank for _, rank in roll.words}
    for rank in range(world):
        if rank not in known:
            roll.words[(None, rank)] = _Word(
                headline="no log of it was given", failed=False, consequence=False, order=order + 3
            )


def _folded(roll: _Roll, leading: tuple[str | None, int] | None) -> tuple[RankSummary, ...]:
    groups: dict[tuple[str | None, str, bool], list[tuple[str | None, int]]] = {}
    for key, word in roll.words.items():
        groups.setdefault((key[0], word.headline, key == leading), []).append(key)
    rows = [
        _summary(roll, sorted(keys, key=lambda key: key[1]), node, is_first=is_first)
        for (node, _, is_first), keys in groups.items()
    ]
    return tuple(
        sorted(rows, key=lambda row: (not row.first, not row.failed, row.order, row.ranks))
    )


def _summary(
    roll: _Roll, keys: Sequence[tuple[str | None, int]], node: str | None, *, is_first: bool
) -> RankSummary:
    words: Mapping[tuple[str | None, int], _Word] = roll.words
    earliest = min((words[key] for key in keys), key=lambda word: word.order)
    artifacts = dict.fromkeys(name for key in keys for name in roll.artifacts.get(key, ()))
    return RankSummary(
        ranks=tuple(rank for _, rank in keys),
        failed=earliest.failed,
        headline=earliest.headline,
        order=earliest.order,
        first=is_first,
        consequence=earliest.consequence,
        time=earliest.stamp,
        artifacts=tuple(artifacts),
        node=node,
    )


def _headline(failure: Failure) -> str:
    words = _WORDS.get(failure.kind, _WORDS["other"])
    requested = value_of(failure, "oom.requested")
    if isinstance(requested, int) and not is_absurd(failure):
        words = f"{words}, {format_size(requested)} requested"
    phase = value_of(failure, "run.phase")
    return f"{words} in {phase}" if isinstance(phase, str) else words


def _name(failure: Failure) -> str:
    return f"rank {failure.rank}" + (f" of {failure.node}" if failure.node else "")
