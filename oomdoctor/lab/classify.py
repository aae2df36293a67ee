"""Says what came of a command: from what its processes told, how it ended, and what it printed.

What a process told counts first, then its uncaught exception, then its exit status with the
kernel's own count of kills, then the words of its output.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.lab.endings import signal_name
from oomdoctor.model.trial import CRASH, FIT, HOST_OOM, OOM, OomIdentity
from oomdoctor.record import dataclass
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.lab.told import Told

    Message: TypeAlias = dict[str, Any]

HOST = "host"
UNWATCHED = (
    "no process that imported torch could be watched (one that is started with `python -I`, -E or"
    " -S, or with another PYTHONPATH, cannot)"
)
_HOST_WORDS = (
    *("DefaultCPUAllocator", "Cannot allocate memory", "std::bad_alloc", "Unable to allocate"),
    "can't allocate memory",
)
_CARD_WORDS = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "HIP out of memory",
)
_REQUESTED = re.compile(r"tried to allocate ([\d.]+) ?(bytes|KiB|MiB|GiB)", re.IGNORECASE)
_UNITS = {"bytes": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_BETWEEN = (
    *("torch/_compile.py", "torch/_dynamo/", "torch/utils/_python_dispatch.py", "torch/_ops.py"),
)
"""Files whose frames stand between an operator and whoever counts its memory."""
_A_KILL = re.compile(r"\bkilled\b|\bSIGKILL\b|exit ?code:? -?9\b", re.IGNORECASE)
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What came of a command, why, and where memory ran out.

    `killed` says that somebody killed it, neither we nor the kernel for want of memory.
    """

    outcome: str
    reason: str
    identity: OomIdentity | None = None
    requested_bytes: int | None = None
    rank: int | None = None
    killed: bool = False


def ending_of(
    told: Told,
    *,
    code: int | None,
    kills: int | None,
    output: str,
    device: str,
    is_capped: bool = False,
) -> Ending:
    """Return what came of a command that ended of itself, or was ended after it had decided.

    `code` is None where the command was ended by us; `kills` is how many processes the kernel
    killed for memory meanwhile, None where it does not say. `is_capped` says that the processes
    were to keep below a cap, which only those that are watched do.
    """
    if told.ooms:
        return _out_of_memory(told, code, device)
    for error in told.errors:
        ending = _of_error(error, device)
        if ending is not None:
            return ending
    if told.is_done:
        return _ended_well(told, is_capped=is_capped)
    if code in _KILLED:
        return _killed(code, kills)
    if code == 0:
        return _ended_well(told, is_capped=is_capped)
    return _of_output(output, code, kills, device)


def kernel_kills() -> int | None:
    """Return how many processes the kernel has killed for memory since it started."""
    try:
        text = Path("/proc/vmstat").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
    return None if found is None else int(found[1])


def identity_of(
    backend: str, exception: str, frames: Sequence[Sequence[Any]], requested_bytes: int | None
) -> OomIdentity:
    """Return what tells this failure from others."""
    return OomIdentity(
        backend=backend,
        exception=exception,
        site=_site(frames),
        size_class=requested_bytes.bit_length() - 1 if requested_bytes else None,
    )


def _out_of_memory(told: Told, code: int | None, device: str) -> Ending:
    """Return the failure of the rank that ran out of memory first."""
    first = told.ooms[0]
    speaker = told.speakers[first["pid"]]
    requested = int(first.get("requested_bytes") or 0) or None
    size = "an unknown size" if requested is None else format_size(requested)
    identity = identity_of(
        device, str(first.get("exception")), first.get("frames") or (), requested
    )
    reason = f"out of memory: {size} were asked for"
    if identity.site is not None:
        reason += f" at {identity.site}"
    if told.ranks > 1 and speaker.rank is not None:
        reason += f", on rank {speaker.rank} of {told.ranks}"
    if speaker.went_on or speaker.is_done or code == 0:
        reason += "; the program handled that and went on, with what it then changed"
    return Ending(
        outcome=OOM, reason=reason, identity=identity, requested_bytes=requested, rank=speaker.rank
    )


def _of_error(error: Message, device: str) -> Ending | None:
    """Return the failure that an uncaught exception means, if it is one of memory."""
    name, text = str(error.get("exception")), str(error.get("text"))
    names = {name, *map(str, error.get("causes") or ())}
    if "OutOfMemoryError" in names or any(one in text for one in _CARD_WORDS):
        outcome, backend = OOM, device
    elif "MemoryError" in names or any(one in text for one in _HOST_WORDS):
        outcome, backend = HOST_OOM, HOST
    else:
        return None
    requested = _requested(text)
    return Ending(
        outcome=outcome,
        reason=text.strip().partition("\n")[0][:500] or name,
        identity=identity_of(backend, name, error.get("frames") or (), requested),
        requested_bytes=requested,
        rank=error.get("rank"),
    )


def _killed(code: int | None, kills: int | None) -> Ending:
    how = "killed (SIGKILL)" if code == -signal.SIGKILL else f"ended with code {code} (SIGKILL)"
    if kills == 0:
        return Ending(
            outcome=CRASH,
            reason=f"{how}, and not by the kernel for want of memory: its count of "
            "such kills is what it was",
            killed=True,
        )
    by = (
        "the kernel killed for want of memory meanwhile"
        if kills
        else ("what the kernel does where memory runs out; it does not say whether it did")
    )
    return Ending(
        outcome=HOST_OOM,
        reason=f"{how}: {by}",
        identity=OomIdentity(backend=HOST, exception="SIGKILL"),
    )


def _of_output(output: str, code: int | None, kills: int | None, device: str) -> Ending:
    """Return what the output of a command says that ended with an error and told nothing."""
    memory = _memory_words(output, device)
    if memory is not None:
        # a shell says `Killed` whoever did that, and the kernel may say that it was not the one
        of_host = memory.outcome == HOST_OOM and kills == 0
        by_others = of_host and _A_KILL.search(memory.reason)
        return _killed(-signal.SIGKILL, kills) if by_others else memory
    if kills:
        return _killed(-signal.SIGKILL, kills)
    last = next((one.strip() for one in reversed(output.splitlines()) if one.strip()), "")
    how = (
        "it was ended"
        if code is None
        else (signal_name(-code) if code < 0 else f"exit code {code}")
    )
    return Ending(outcome=CRASH, reason=f"{how}: {last[:300]}" if last else how)


def _memory_words(output: str, device: str) -> Ending | None:
    from oomdoctor.evidence.clean import clean
    from oomdoctor.evidence.readers import read_all
    from oomdoctor.evidence.source import source_of_text

    reading = read_all(clean(source_of_text(output, name="output.log")))
    for failure in reading.failures:
        if failure.kind not in ("gpu-oom", "host-oom"):
            continue
        own = failure.kind == "gpu-oom"
        text = failure.line_quote.text
        requested = _requested(text)
        return Ending(
            outcome=OOM if own else HOST_OOM,
            reason=text.strip()[:500],
            identity=identity_of(device if own else HOST, "printed", (), requested),
            requested_bytes=requested,
            rank=failure.rank,
        )
    return None


def _ended_well(told: Told, *, is_capped: bool) -> Ending:
    """Return that a command fits; below a cap that was not in force, that shows nothing."""
    if is_capped and not told.speakers:
        return Ending(outcome=CRASH, reason=f"its cap was not in force: {UNWATCHED}")
    if is_capped and not told.held_anything:
        reason = "its cap was not put to the test: no process that is watched held a tensor there"
        return Ending(outcome=CRASH, reason=reason)
    return Ending(outcome=FIT, reason=_fit_reason(told))


def _fit_reason(told: Told) -> str:
    """Say what a trial that fits leaves open."""
    parts = []
    if not told.speakers:
        parts.append(f"nothing was measured: {UNWATCHED}")
    elif not told.steps:
        parts.append("it came to its own end without an optimizer step")
    if told.unmet:
        parts.append(f"it was asked for and not seen: {', '.join(sorted(told.unmet))}")
    return "; ".join(parts)


def _site(frames: Sequence[Sequence[Any]]) -> str | None:
    """Return file and function of the innermost frame that does not count memory itself."""
    for path, function, *_ in frames:
        if not any(one in str(path).replace("\\", "/") for one in _BETWEEN):
            return f"{PurePath(str(path)).name}:{function}"
    return None


def _requested(text: str) -> int | None:
    found = _REQUESTED.search(text)
    return int(float(found[1]) * _UNITS[found[2].lower()]) if found else None
