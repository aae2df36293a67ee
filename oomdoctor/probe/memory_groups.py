"""The limit of a process's memory group (cgroup), its use, and how often the kernel killed in it.

/sys/fs/cgroup/<group>/memory.max         /sys/fs/cgroup/memory/<group>/memory.limit_in_bytes
"""

from __future__ import annotations

from pathlib import Path

from oomdoctor.record import dataclass

GROUPS = Path("/sys/fs/cgroup")
PROC = Path("/proc")
_UNLIMITED = 1 << 60  # version 1 writes a huge number where there is no limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a version; `kills_key` names the line that counts what the kernel killed."""

    limit: str
    use: str
    peak: str
    kills: str
    kills_key: str


_VERSION_2 = Files(
    limit="memory.max",
    use="memory.current",
    peak="memory.peak",
    kills="memory.events",
    kills_key="oom_kill",
)
_VERSION_1 = Files(
    limit="memory.limit_in_bytes",
    use="memory.usage_in_bytes",
    peak="memory.max_usage_in_bytes",
    kills="memory.oom_control",
    kills_key="oom_kill",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryGroup:
    """A group that bounds a process, or its own where none does; `path` names it."""

    path: str
    limit_bytes: int | None = None
    used_bytes: int | None = None
    peak_bytes: int | None = None
    kills: int | None = None


def group_of(pid: int | str, groups: Path = GROUPS, proc: Path = PROC) -> MemoryGroup | None:
    """Return the group with the tightest limit that a process is in; None where none is seen."""
    found: list[MemoryGroup] = []
    for files, root, name in _memberships(pid, groups, proc):
        parts = [one for one in name.split("/") if one]
        if ".." in parts:
            continue  # it lies outside of what this container sees
        for count in range(len(parts), -1, -1):
            folder = root.joinpath(*parts[:count])
            if (folder / files.use).exists():
                found.append(look(folder, files))
    limited = [one for one in found if one.limit_bytes is not None]
    if limited:
        return min(limited, key=lambda one: one.limit_bytes or 0)
    return found[0] if found else None


def look(folder: Path, files: Files | None = None) -> MemoryGroup:
    """Read a group."""
    if files is None:
        files = _VERSION_2 if (folder / _VERSION_2.use).exists() else _VERSION_1
    limit = _number(folder / files.limit)
    return MemoryGroup(
        path=str(folder),
        limit_bytes=limit if limit is not None and limit < _UNLIMITED else None,
        used_bytes=_number(folder / files.use),
        peak_bytes=_number(folder / files.peak),
        kills=_counted(folder / files.kills, files.kills_key),
    )


def _memberships(pid: int | str, groups: Path, proc: Path) -> list[tuple[Files, Path, str]]:
    """Return where the groups of a process lie, by version."""
    found = []
    for line in _text(proc / str(pid) / "cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if number == "0" and not controllers:
            # with both versions mounted, the second one has a folder of its own
            unified = groups / "unified"
            found.append((_VERSION_2, unified if unified.is_dir() else groups, name))
        elif "memory" in controllers.split(","):
            found.append((_VERSION_1, groups / "memory", name))
    return found


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _counted(path: Path, key: str) -> int | None:
    pairs = (line.split() for line in _text(path).splitlines())
    return next((int(one[1]) for one in pairs if len(one) == 2 and one[0] == key), None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
