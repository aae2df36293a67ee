"""Keeps one command of a trial: starts it, tells its end, and leaves none of its children behind.

Run as a program of its own, `keeper.py FD -- command ...`, standard library only. The command gets
a session of its own and dies with the keeper; whatever it started, in whatever session, becomes the
keeper's child when its parent is gone, and is ended when the command has ended, when the lab says
so, or when the lab is gone. Lines on the socket FD:

    keeper -> lab   {"pid": 4711, "start": 118940}  {"code": 1}  {"failed": "No such file ..."}
    lab -> keeper   stop
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path

LINGER_S = 2.0  # that children have to end of themselves, after the command has
SOFT_S = 3.0  # after SIGTERM, until SIGKILL
_LOOK_S = 0.05
_SUBREAPER, _DEATH_SIGNAL = 36, 1  # of prctl(2)
_OOM_SCORE = 500  # the kernel shall take the trial before anything of others


def main(arguments: list[str]) -> int:
    """Keep a command until nothing of it runs any more."""
    line = socket.socket(fileno=int(arguments[0]))
    command = arguments[2:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the lab decides; a terminal may signal us as well
    _prctl(_SUBREAPER, 1)
    child, problem = _start(command, line.fileno())
    if problem:
        _tell(line, {"failed": problem})
        return 0
    _tell(line, {"pid": child, "start": start_time(child)})
    code = _wait(line, child)
    if code is not None:
        _tell(line, {"code": code})
        _linger(line)
    end_all(soft=code is None)
    return 0


def _start(command: list[str], line: int) -> tuple[int, str]:
    """Start the command; why it could not be started, if so."""
    heard, told = os.pipe()
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            os.close(heard)
            os.close(line)
            os.setsid()
            _prctl(_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(1)
            with contextlib.suppress(OSError):
                Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE), encoding="ascii")
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(command[0], command)  # noqa: S606 - the command that the user asked to run
        except OSError as error:
            os.write(told, (error.strerror or "it does not start").encode())
        finally:
            os._exit(127)
    os.close(told)
    with os.fdopen(heard, "rb") as pipe:
        problem = pipe.read().decode(errors="replace")
    return child, problem


def _wait(line: socket.socket, child: int) -> int | None:
    """Return the exit code of the command; None when it has to be stopped before its end."""
    while True:
        code = _reap(child)
        if code is not None:
            return code
        if _is_told_to_stop(line):
            return None


def _linger(line: socket.socket) -> None:
    """Give children that the command left behind a moment to end."""
    until = time.monotonic() + LINGER_S
    while time.monotonic() < until and descendants() and not _is_told_to_stop(line):
        _reap(None)


def _is_told_to_stop(line: socket.socket) -> bool:
    """Wait a moment; say whether the lab said stop, or is gone."""
    return bool(select.select([line], [], [], _LOOK_S)[0])


def _reap(child: int | None) -> int | None:
    """Collect children that have ended; the exit code of the command, if it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = os.waitstatus_to_exitcode(status)


def end_all(*, soft: bool) -> None:
    """End all descendants: with SIGTERM first if there is time, and until none is left."""
    if soft:
        _signal_all(signal.SIGTERM)
        until = time.monotonic() + SOFT_S
        while time.monotonic() < until and descendants():
            _reap(None)
            time.sleep(_LOOK_S)
    while descendants():
        _signal_all(signal.SIGKILL)
        _reap(None)
        time.sleep(_LOOK_S / 5)


def _signal_all(number: int) -> None:
    for pid, start in descendants().items():
        send(pid, start, number)


def descendants(root: int | None = None) -> dict[int, int]:
    """Return the live processes below a process, this one if none is named, with start times."""
    parents: dict[int, list[tuple[int, int]]] = {}
    for pid in pids():
        known = _stat(pid)
        if known is not None and known[0] not in "ZX":
            parents.setdefault(known[1], []).append((pid, known[2]))
    found: dict[int, int] = {}
    below = [os.getpid() if root is None else root]
    while below:
        for pid, start in parents.get(below.pop(), ()):
            found[pid] = start
            below.append(pid)
    return found


def pids() -> list[int]:
    """Return the numbers of all processes."""
    return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdecimal()]


def start_time(pid: int) -> int | None:
    """Return when a process started, in the kernel's ticks; None if there is none."""
    known = _stat(pid)
    return None if known is None else known[2]


def send(pid: int, start: int, number: int) -> bool:
    """Send a signal to a process that started then; never to one that has its number by now."""
    try:
        handle = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return False
    try:
        if start_time(pid) != start:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)


def _stat(pid: int) -> tuple[str, int, int] | None:
    """Return state, parent and start time of a process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        fields = text.rpartition(")")[2].split()
        return fields[0], int(fields[1]), int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _tell(line: socket.socket, message: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        line.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
