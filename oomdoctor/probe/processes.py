"""What processes hold on the host and have worked, as /proc tells it: a few reads for each.

VmHWM:  2310776 kB   RssAnon:  1998772 kB   VmSwap:  0 kB
"""

from __future__ import annotations

import os
from contextlib import suppress

from oomdoctor.record import dataclass

PROC = "/proc"
_SHORTEST = 22  # fields of `stat` behind the name that are read here
_NAMES = {
    "VmPeak": "peak_address_bytes",
    "VmHWM": "peak_resident_bytes",
    "VmRSS": "resident_bytes",
    "RssAnon": "anonymous_bytes",
    "RssShmem": "shared_memory_bytes",
    "VmSwap": "swapped_bytes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """The line of a process: its parent, its state, its start and its work in the kernel's ticks.

    `name` is cut to 15 characters by the kernel.
    """

    name: str
    state: str
    parent: int
    work_ticks: int
    start_ticks: int

    @property
    def is_alive(self) -> bool:
        """Whether it still runs: a zombie holds nothing."""
        return self.state not in "ZX"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """What one process holds on the host; a kernel thread holds nothing."""

    resident_bytes: int | None = None
    peak_resident_bytes: int | None = None
    anonymous_bytes: int | None = None
    shared_memory_bytes: int | None = None
    swapped_bytes: int | None = None
    peak_address_bytes: int | None = None
    threads: int | None = None


def numbers() -> list[int]:
    """Return the numbers of all processes."""
    return [int(name) for name in os.listdir(PROC) if name.isdecimal()]


def stat(pid: int) -> Stat | None:
    """Return the line of a process; None where there is none."""
    text = _text(f"{PROC}/{pid}/stat")
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    if len(fields) < _SHORTEST:
        return None
    return Stat(
        name=head.partition("(")[2],
        state=fields[0],
        parent=int(fields[1]),
        work_ticks=int(fields[11]) + int(fields[12]),
        start_ticks=int(fields[19]),
    )


def tree(*roots: int) -> dict[int, Stat]:
    """Return processes and all that stem from them, as far as they still have their parents."""
    every = {pid: known for pid in numbers() if (known := stat(pid)) is not None}
    children: dict[int, list[int]] = {}
    for number, one in every.items():
        children.setdefault(one.parent, []).append(number)
    found: dict[int, Stat] = {}
    below = [root for root in roots if root in every]
    while below:
        pid = below.pop()
        if pid not in found:
            found[pid] = every[pid]
            below += children.get(pid, ())
    return found


def is_below(pid: int, root: int) -> bool:
    """Say whether a process is another one, or stems from it."""
    known = set()
    while pid > 1 and pid not in known:
        if pid == root:
            return True
        known.add(pid)
        one = stat(pid)
        if one is None:
            return False
        pid = one.parent
    return False


def host_use(pid: int) -> HostUse:
    """Return what a process holds, as far as it may be read."""
    found: dict[str, int] = {}
    for line in _text(f"{PROC}/{pid}/status").splitlines():
        key, _, rest = line.partition(":")
        if key in _NAMES:
            found[_NAMES[key]] = int(rest.split()[0]) << 10
        elif key == "Threads":
            found["threads"] = int(rest)
    return HostUse(**found)


def proportional_bytes(pid: int) -> int | None:
    """Return what a process holds, shared pages split among their holders; walks its pages."""
    for line in _text(f"{PROC}/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    return None


def address_limit_bytes(pid: int) -> int | None:
    """Return the limit of a process's address space (`ulimit -v`); None where there is none."""
    for line in _text(f"{PROC}/{pid}/limits").splitlines():
        if line.startswith("Max address space"):
            value = line.removeprefix("Max address space").split()[0]
            return int(value) if value.isdecimal() else None
    return None


def environment(pid: int) -> dict[str, str]:
    """Return the variables that a process was started with, where they may be read."""
    pairs = (one.partition("=") for one in _text(f"{PROC}/{pid}/environ").split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def waits_in(pid: int) -> str | None:
    """Return the kernel's function that a process waits in; None where nobody tells."""
    name = _text(f"{PROC}/{pid}/wchan").strip("\0\n ")
    return name if name not in ("", "0") else None


def kernel_kills() -> int | None:
    """Return how many processes the kernel has killed for memory since the machine started."""
    pairs = (line.split() for line in _text(f"{PROC}/vmstat").splitlines())
    return next((int(one[1]) for one in pairs if one[0] == "oom_kill"), None)


def memory_info() -> dict[str, int]:
    """Return the machine's memory: MemTotal, MemAvailable, SwapTotal, ... in bytes."""
    found: dict[str, int] = {}
    for line in _text(f"{PROC}/meminfo").splitlines():
        key, _, rest = line.partition(":")
        with suppress(ValueError, IndexError):
            found[key] = int(rest.split()[0]) << 10
    return found


def overcommit_mode() -> int | None:
    """Return how the kernel treats requests that it could not back: 2 is strict."""
    text = _text(f"{PROC}/sys/vm/overcommit_memory").strip()
    return int(text) if text.isdecimal() else None


def _text(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            parts = []
            while part := file.read(1 << 16):
                parts.append(part)
            return b"".join(parts).decode("utf-8", "replace")
    except OSError:
        return ""
