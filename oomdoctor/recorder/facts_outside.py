"""What was seen of a run from outside, as facts: the host, who killed, other processes."""

from __future__ import annotations

import shlex
import signal
from typing import TYPE_CHECKING

from oomdoctor.model.enums import Origin
from oomdoctor.record import replace
from oomdoctor.recorder.bundle import IN_GROUP, ON_MACHINE
from oomdoctor.recorder.outcome import INTERRUPTED, KERNEL_KILL, KILLED, SUCCEEDED
from oomdoctor.recorder.quoting import holds, seen
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Fact
    from oomdoctor.recorder.bundle import Run, Sample
    from oomdoctor.recorder.outcome import Outcome
    from oomdoctor.recorder.quoting import Quoting

_SIGNALLED = 128
_KILLED_CODE = _SIGNALLED + signal.SIGKILL
_TIMER = "timeout"  # of coreutils
_STRICT = 2  # of vm.overcommit_memory
_PLENTY = 0.2  # of memory available: no killer of user space looks at less


def facts_outside(run: Run, outcome: Outcome, quoting: Quoting) -> Iterator[Fact]:
    """Yield the facts of the machine and of the end."""
    if run.command:
        yield seen("run.command", shlex.join(run.command), quoting.run("command"))
    if outcome.word != SUCCEEDED:
        yield from _end(run, outcome, quoting)
    last = next((one for one in reversed(run.samples) if one.host), None)
    if last is not None:
        yield from _host(last, quoting)
    mode = (run.told.get("machine") or {}).get("overcommit_mode")
    if mode is not None:
        strict = mode == _STRICT
        yield holds("host.overcommit_strict", quoting.run("overcommit_mode"), value=strict)
    yield from _address_space(run, quoting)
    yield from _cards(run, quoting)


def _address_space(run: Run, quoting: Quoting) -> Iterator[Fact]:
    """Yield the limit of the address space of the process that came nearest to its own."""
    limit, used = "address_limit_bytes", "peak_address_bytes"
    found = [
        (one[used] / one[limit], one[limit], one[used], sample.line)
        for sample in run.samples
        for one in sample.processes
        if isinstance(one.get(limit), int) and one[limit] and isinstance(one.get(used), int)
    ]
    if not found:
        return
    _, bound, mapped, line = max(found)
    quote = quoting.sample(line, used)
    # between two looks from outside a process may have filled it: what is resident is mapped
    for process in run.processes:
        for phase in process.phases:
            if (phase.host_bytes or 0) > mapped:
                mapped = phase.host_bytes or 0
                quote = quoting.event(process.key, phase.line, "host_bytes")
    yield seen("host.address_limit", bound, quoting.sample(line, limit))
    yield seen("host.address_used", mapped, quote)


def _end(run: Run, outcome: Outcome, quoting: Quoting) -> Iterator[Fact]:
    if run.exit_code == _KILLED_CODE:
        yield holds("host.killed", quoting.run("exit_code"))
    elif _was_not_killed(run):
        source = "the exit code tells of no kill, and the kernel killed nothing for memory"
        yield holds("host.killed", quoting.run("exit_code"), source=source, value=False)
    if run.kills(ON_MACHINE) == 0:
        source = "the kernel's count of what it killed for memory did not rise"
        yield holds("host.oom_kill", quoting.run(ON_MACHINE), source=source, value=False)
    if outcome.word == KERNEL_KILL:
        name = IN_GROUP if run.kills(IN_GROUP) else ON_MACHINE
        kills = run.kills(name)
        quote = quoting.run(name)
        yield holds("host.oom_kill", quote, source=outcome.why)
        yield seen("host.killer", "kernel", quote)
        if name == IN_GROUP:
            yield seen("host.kill_scope", "group", quote)
        if kills:
            yield seen("host.kills", kills, quote)
    if outcome.word == INTERRUPTED:
        quote = quoting.run("signals")
        yield holds("host.ended_outside", quote, source=outcome.why)
        by = _ended_by(run)
        if by is not None:
            yield seen("launch.ended_by", by, quote, source=outcome.why)
    elif outcome.word == KILLED and run.kills(ON_MACHINE) == 0:
        yield from _somebody(run, quoting)


def _ended_by(run: Run) -> str | None:
    """Return who asked for the end, as far as signal and sender tell."""
    for one in run.told.get("signals") or ():
        if one.get("signal") == signal.SIGHUP:
            return "hang-up"
        if one.get("sender") == _TIMER:
            return "time-limit"
        if one.get("terminal") and one.get("signal") in (signal.SIGINT, signal.SIGQUIT):
            return "operator"
    return None


def _was_not_killed(run: Run) -> bool:
    """Say whether no process can have been killed, nor behind the back of the one that started."""
    code = run.exit_code
    if code is None or code > _SIGNALLED or run.kills(ON_MACHINE) != 0:
        return False
    if run.processes:
        return all(one.exited or one.errors for one in run.processes)
    return len(run.pids()) <= 1


def _somebody(run: Run, quoting: Quoting) -> Iterator[Fact]:
    """Yield that somebody ended it: not the kernel, and memory was not short when it was killed."""
    last = next((one for one in reversed(run.samples) if one.host), None)
    if last is None:
        return
    total, available = last.host.get("total_bytes"), last.host.get("available_bytes")
    limit, used = last.host.get("cgroup_limit_bytes"), last.host.get("cgroup_used_bytes")
    is_short = limit is not None and used is not None and used > (1 - _PLENTY) * limit
    if total and available and available > _PLENTY * total and not is_short:
        source = f"killed, not by the kernel, with {format_size(available)} of memory available"
        quotes = (quoting.run(ON_MACHINE), quoting.sample(last.line, "available_bytes"))
        fact = holds("host.ended_outside", *quotes, source=source)
        yield replace(fact, origin=Origin.DERIVED)


def _host(last: Sample, quoting: Quoting) -> Iterator[Fact]:
    for key, name in (
        ("host.ram_total", "total_bytes"),
        ("host.ram_available", "available_bytes"),
        ("host.group_limit", "cgroup_limit_bytes"),
    ):
        value = last.host.get(name)
        if isinstance(value, int):
            yield seen(key, value, quoting.sample(last.line, name))
    peak = last.host.get("cgroup_peak_bytes") or last.host.get("cgroup_used_bytes")
    if isinstance(peak, int) and "cgroup_limit_bytes" in last.host:
        name = "cgroup_peak_bytes" if "cgroup_peak_bytes" in last.host else "cgroup_used_bytes"
        yield seen("host.group_used", peak, quoting.sample(last.line, name))


def _cards(run: Run, quoting: Quoting) -> Iterator[Fact]:
    """Yield the bytes of others on the fullest card, and which cards there are."""
    last = next((one for one in reversed(run.samples) if one.devices), None)
    if last is None:
        return
    fullest = max(last.devices, key=lambda one: one.get("used_bytes") or 0)
    for key, name in (
        ("gpu.name", "name"),
        ("gpu.total", "total_bytes"),
        ("gpu.foreign", "others_bytes"),
    ):
        value = fullest.get(name)
        if isinstance(value, (int, str)):
            yield seen(key, value, quoting.sample(last.line, name))
