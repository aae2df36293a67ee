"""What one input tells of another's failure: the launcher's exit code, the peers' broken pipes.

```
gpu07 kernel: Out of memory: Killed process 4711 (python3) ...       the cause
train.log: ... exits with return code = -9                          its echo
rank0.log: [Rank 0] Watchdog caught collective operation timeout     follows, half an hour later
rank1.log: torch.distributed.DistBackendError: ... Connection reset by peer
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import MEMORY_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.core import Failure

SLACK_S = 5.0
"""Clocks of two machines, and the moment between a failure and the line that tells it."""

STALE_S = 3600.0
"""A kernel's kill so long before everything else is of another run."""

_PEER_WORDS = (
    "connection reset by peer",
    "broken pipe",
    "connection closed by",
    "connection refused",
    "socket timeout",
    "nccl",
    "distbackenderror",
    "diststoreerror",
    "tcpstore",
    "gloo",
    "sigterm",
    "signal 15",
    "got signal: 15",
    "signalexception",
    "childfailederror",
    "exitcode",
    "exit code",
    "killing subprocess",
    "closing signal",
    "processexitedexception",
    "dataloader worker",
    "pin memory thread",
    "workerprocdead",
    "actordiederror",
    "enginedeaderror",
    "engine core proc",
)

_HEARD = (
    ("ended by SIGTERM", ("sigterm", "signal 15", "signal: 15")),
    ("collective timed out", ("watchdog caught", "timed out", "timeout")),
    ("lost its peers", ("connection reset", "broken pipe", "connection closed", "remote process")),
)


def follows(failure: Failure, failures: Sequence[Failure]) -> bool:
    """Say whether another input tells what this failure followed from."""
    heard = failure.kind == "collective" or _speaks_of_peers(failure)
    if not heard and failure.kind != "host-oom":
        return False
    others = [
        other
        for other in failures
        if other is not failure
        and other.kind in MEMORY_KINDS
        and not other.consequence
        and other.line_quote.artifact != failure.line_quote.artifact
    ]
    if not others:
        return False
    if heard:
        return any(_may_be_before(other, failure) for other in others)
    if _is_bare_kill(failure):
        return any(
            not _is_bare_kill(other)
            and _may_be_before(other, failure)
            and not _stale(other, failure)
            for other in others
        )
    return any(_stale(failure, other) for other in others)


def heard(failure: Failure) -> str:
    """Say in words what a rank noticed of another one's failure, where its line shows it."""
    lowered = failure.line_quote.text.lower()
    for words, literals in _HEARD:
        if any(literal in lowered for literal in literals):
            return words
    return ""


def _speaks_of_peers(failure: Failure) -> bool:
    if failure.kind != "other":
        return False
    lowered = failure.line_quote.text.lower()
    return any(word in lowered for word in _PEER_WORDS)


def _is_bare_kill(failure: Failure) -> bool:
    """Say whether the failure is an exit code or a SIGKILL that does not say why."""
    keys = {fact.key for fact in failure.facts if fact.value is True}
    return "host.killed" in keys and not keys & {"host.oom_kill", "host.worker_killed"}


def _may_be_before(one: Failure, other: Failure) -> bool:
    if one.when is None or other.when is None:
        return True
    return one.when <= other.when + SLACK_S


def _stale(kill: Failure, other: Failure) -> bool:
    """Say whether a kernel's kill is too long before another input's failure to be its cause."""
    if kill.when is None or other.when is None or other.kind == "other":
        return False
    return other.when - kill.when > STALE_S
