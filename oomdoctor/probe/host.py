"""How much memory the host still gives: what the system has, and what the container may use."""

from __future__ import annotations

from pathlib import Path

import psutil

from oomdoctor.record import dataclass

CGROUPS = Path("/sys/fs/cgroup")
OWN_GROUP = Path("/proc/self/cgroup")
_UNLIMITED = 1 << 60  # version 1 writes a huge number where there is no limit
# limit, use, and the key of `memory.stat` for what can be dropped: versions 2 and 1
_FILES = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMemory:
    """Bytes of the host: all there are for us, and those that can be had now."""

    total_bytes: int
    available_bytes: int


def memory(cgroups: Path = CGROUPS, own: Path = OWN_GROUP) -> HostMemory:
    """Return what this process may count on: the tightest limit of all groups that it is in."""
    found = psutil.virtual_memory()
    total, available = int(found.total), int(found.available)
    for folder in _groups(cgroups, own):
        for limit_name, use_name, stat_name, key in _FILES:
            limit, use = _number(folder / limit_name), _number(folder / use_name)
            if limit is None or limit >= _UNLIMITED:
                continue
            held = (use or 0) - _stat(folder / stat_name, key)
            total, available = min(total, limit), min(available, max(limit - held, 0))
    return HostMemory(total_bytes=total, available_bytes=available)


def _groups(cgroups: Path, own: Path) -> list[Path]:
    """Return the folders of the groups of this process, from its own to the root."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    paths = [line[4:] for line in lines if line.startswith("0::/")]
    parts = paths[0].split("/") if paths and ".." not in paths[0] else []
    return [cgroups.joinpath(*parts[:count]) for count in range(len(parts), -1, -1)]


def descendants(pid: int | None = None) -> frozenset[int]:
    """Return a process (this one) and all that stem from it."""
    try:
        root = psutil.Process(pid)
        return frozenset({root.pid, *(one.pid for one in root.children(recursive=True))})
    except psutil.Error:
        return frozenset()


def is_here(pid: int) -> bool:
    """Say whether a process is seen from here; from within a container not all are."""
    return bool(psutil.pid_exists(pid))


def _number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdecimal() else None


def _stat(path: Path, key: str) -> int:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return 0
    values = (line.split() for line in lines)
    return next((int(pair[1]) for pair in values if pair[:1] == [key] and len(pair) > 1), 0)
