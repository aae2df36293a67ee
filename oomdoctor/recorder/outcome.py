"""What came of a run: from what its processes told, its exit code, the kernel's counts, its output.

succeeded · out of device memory · out of host memory · killed by the kernel · hung · interrupted ·
killed · crashed · running · end unknown
"""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, Any

from oomdoctor.lab.endings import signal_name
from oomdoctor.record import NamedTuple
from oomdoctor.recorder.bundle import IN_GROUP, ON_MACHINE
from oomdoctor.recorder.places import KERNEL_FILE, content_of
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from oomdoctor.model.core import Failure
    from oomdoctor.recorder.bundle import Run
    from oomdoctor.recorder.told import Error, OutOfMemory, Process

SUCCEEDED = "succeeded"
DEVICE_OOM = "out-of-device-memory"
HOST_OOM = "out-of-host-memory"
KERNEL_KILL = "killed-by-kernel"
HUNG = "hung"
INTERRUPTED = "interrupted"
KILLED = "killed"
CRASHED = "crashed"
RUNNING = "running"
UNKNOWN = "end-unknown"
WORDS = {
    SUCCEEDED: "succeeded",
    DEVICE_OOM: "out of device memory",
    HOST_OOM: "out of host memory",
    KERNEL_KILL: "killed by the kernel for memory",
    HUNG: "hung",
    INTERRUPTED: "interrupted",
    KILLED: "killed",
    CRASHED: "crashed",
    RUNNING: "running",
    UNKNOWN: "end unknown",
}
"""How outcomes are printed."""
_A_SHELLS = 128
_CRASHES = frozenset(
    (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP)
)
_ASKED = frozenset((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU, signal.SIGQUIT))
_HOST_WORDS = re.compile(
    r"DefaultCPUAllocator|Cannot allocate memory|can't allocate memory|bad_alloc"
    r"|Unable to allocate"
)
_DEVICE_WORDS = re.compile(
    r"CUDA out of memory|CUDA error: out of memory|HIP out of memory|_STATUS_ALLOC_FAILED"
)
_VICTIM = re.compile(r"Killed process (\d+)")
_LINE = 300
_NOT_BY_KERNEL = "not by the kernel for want of memory: its count of such kills is what it was"


class Outcome(NamedTuple):
    """What came of a run, why that is thought, and the rank where memory ran out."""

    word: str
    why: str
    rank: int | None = None


def outcome_of(run: Run, printed: Sequence[Failure] = ()) -> Outcome:
    """Return what came of a run; `printed` are the failures that its output tells of."""
    code = run.exit_code
    if run.told.get("stopped"):
        return Outcome(HUNG, f"{_silence(run)}; it was ended for that, as asked")
    if code == 0:
        return Outcome(SUCCEEDED, _handled(run))
    memory = _inside(run)
    if memory is not None and (code is not None or not run.alive):
        return memory
    if run.alive:
        return Outcome(RUNNING, "it has not ended")
    return _by_kernel(run) or _of_output(run, printed) or _by_signal(run) or _crashed(run)


def _inside(run: Run) -> Outcome | None:
    """Return the shortage of memory that a process told of and did not get over."""
    found = []
    for process in run.working:
        last = next((one for one in reversed(process.ooms) if not one.went_on), None)
        final = next((one for one in reversed(process.errors) if not one.thread), None)
        if last is not None and (final is None or _of_memory(final)):
            found.append((last.t, _refused(run, process, last)))
        elif final is not None and _of_memory(final):
            word = DEVICE_OOM if _is_of_device(final) else HOST_OOM
            text = _first_line(final.text) or final.exception
            found.append((final.t, Outcome(word, text, process.rank)))
    return min(found, key=lambda one: one[0])[1] if found else None


def _refused(run: Run, process: Process, oom: OutOfMemory) -> Outcome:
    """Say what was asked for, where, and when."""
    size = "memory" if oom.requested_bytes is None else format_size(oom.requested_bytes)
    of_host = oom.device is None and (oom.text is None or not _DEVICE_WORDS.search(oom.text))
    where = "on the host" if of_host else f"on device {oom.device or 0}"
    parts = [f"{size} asked for {where} could not be had"]
    if oom.step:
        parts.append(f"after {oom.step} steps")
    if oom.phase:
        parts.append(f"in phase {oom.phase!r}")
    if process.rank is not None and len(run.working) > 1:
        parts.append(f"on rank {process.rank}")
    return Outcome(HOST_OOM if of_host else DEVICE_OOM, ", ".join(parts), process.rank)


def _of_memory(error: Error) -> bool:
    names = {error.exception, *error.causes}
    return bool(
        names & {"OutOfMemoryError", "MemoryError"}
        or _HOST_WORDS.search(error.text)
        or _DEVICE_WORDS.search(error.text)
    )


def _is_of_device(error: Error) -> bool:
    names = {error.exception, *error.causes}
    return "OutOfMemoryError" in names or _DEVICE_WORDS.search(error.text) is not None


def _by_kernel(run: Run) -> Outcome | None:
    """Return that the kernel killed for memory, where it says so of this run."""
    victims = [pid for pid in _victims(run.folder) if pid in run.pids()]
    if victims:
        process = next((one for one in run.processes if one.pid in victims), None)
        rank = None if process is None else process.rank
        text = f"the kernel's log says that it killed process {victims[0]} of this run"
        return Outcome(KERNEL_KILL, text, rank)
    group = run.kills(IN_GROUP)
    if group:
        times = "once" if group == 1 else f"{group} times"
        return Outcome(KERNEL_KILL, f"the kernel killed {times} in the memory group of this run")
    if run.kills(ON_MACHINE) and _is_killed(run):
        text = "it was killed while the kernel killed for memory on this machine; its log is closed"
        return Outcome(KERNEL_KILL, f"{text} to this user, so that it is not certain of this run")
    return None


def _is_killed(run: Run) -> bool:
    return run.exit_code == _A_SHELLS + signal.SIGKILL


def _victims(folder: Path) -> Iterator[int]:
    text = content_of(folder / KERNEL_FILE).decode(errors="replace")
    yield from (int(found) for found in _VICTIM.findall(text))


def _of_output(run: Run, printed: Sequence[Failure]) -> Outcome | None:
    """Return the shortage that the output tells of; who asked for an end, or killed, told nothing.

    A shell or a launcher prints that a child was killed, whoever did that.
    """
    for one in printed:
        if one.kind not in ("gpu-oom", "host-oom", "shm") or one.consequence:
            continue
        if any(fact.key == "host.killed" for fact in one.facts):
            if run.kills(ON_MACHINE) == 0:
                text = _first_line(one.line_quote.text)
                return Outcome(KILLED, f"printed: {text}; {_NOT_BY_KERNEL}", one.rank)
            continue
        if any(fact.key == "oom.caught" and fact.value for fact in one.facts):
            continue
        word = DEVICE_OOM if one.kind == "gpu-oom" else HOST_OOM
        return Outcome(word, f"printed: {_first_line(one.line_quote.text)}", one.rank)
    return None


def _by_signal(run: Run) -> Outcome | None:
    """Return which signal ended the command, and who sent it as far as that is known."""
    number = run.signal
    code = run.exit_code
    if number is None and code is not None and _A_SHELLS < code <= _A_SHELLS + 64:
        number = code - _A_SHELLS
    sent = _sent(run)
    if run.told.get("silence") and (number is not None or sent):
        return Outcome(HUNG, f"{_silence(run)}; then {sent or signal_name(number or 0)} ended it")
    if sent and (number is None or number in _ASKED):
        return Outcome(INTERRUPTED, sent)
    return None if number is None else _by_number(run, number)


def _by_number(run: Run, number: int) -> Outcome:
    name = signal_name(number)
    if number in _CRASHES:
        return Outcome(CRASHED, f"{name}: a library or the interpreter crashed")
    if number == signal.SIGINT:
        return Outcome(INTERRUPTED, name)
    if number == signal.SIGKILL and run.kills(ON_MACHINE) == 0:
        return Outcome(KILLED, f"{name}; {_NOT_BY_KERNEL}")
    return Outcome(KILLED, name)


def _sent(run: Run) -> str:
    """Say which signal was sent to the run that asks for an end, and by whom."""
    asked = [one for one in run.told.get("signals") or () if one.get("signal") in _ASKED]
    if not asked:
        return ""
    first: dict[str, Any] = asked[0]
    by = "the terminal" if first.get("terminal") else first.get("sender")
    return f"{signal_name(first['signal'])}{f' from {by}' if by else ''}"


def _silence(run: Run) -> str:
    found = run.told.get("silence")
    if not found:
        return "it printed nothing and made no step"
    how = "its processes worked meanwhile" if found.get("worked") else "its processes waited"
    return f"it printed nothing and made no step for {found.get('seconds') or 0:.0f} s; {how}"


def _crashed(run: Run) -> Outcome:
    if run.exit_code is None:
        last = max((one.last for one in run.processes if one.last is not None), default=None)
        told = "" if last is None or run.started is None else f" at {last - run.started:.0f} s"
        why = f"its end was not written: the recorder was ended first{told}, or the disk is full"
        return Outcome(UNKNOWN, why)
    errors = [one for process in run.working for one in process.errors if not one.thread]
    if errors:
        first = min(errors, key=lambda one: one.t)
        text = _first_line(first.text)
        return Outcome(CRASHED, f"{first.exception}: {text}" if text else first.exception)
    return Outcome(CRASHED, f"exit code {run.exit_code}")


def _handled(run: Run) -> str:
    """Say of a run that succeeded what it got over."""
    count = sum(len(one.ooms) for one in run.processes)
    if not count:
        return "exit code 0"
    times = "once" if count == 1 else f"{count} times"
    return f"exit code 0; it ran out of memory {times} and got over it"


def _first_line(text: str) -> str:
    return next((one.strip() for one in text.splitlines() if one.strip()), "")[:_LINE]
