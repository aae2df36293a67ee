"""A terminal as far as a live screen needs one: what stands on it after each thing written."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_CONTROL = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])")
PATIENCE_S = 90


class Screen:
    """Rows of characters with a cursor; colours are left out, what is unknown fails."""

    def __init__(self, rows: int, columns: int) -> None:
        """Begin with an empty one."""
        self.rows = rows
        self.columns = columns
        self.lines = [""]
        self.row = self.column = 0
        self.hides_cursor = False

    def write(self, text: str) -> None:
        at = 0
        while at < len(text):
            found = _CONTROL.match(text, at)
            if found:
                self._control(found[1], found[2])
                at = found.end()
            else:
                self._put(text[at])
                at += 1

    def shown(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines[-self.rows :]).strip("\n")

    def _put(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self.row += 1
            while len(self.lines) <= self.row:
                self.lines.append("")
        else:
            assert char.isprintable(), repr(char)
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + char + line[self.column + 1 :]
            self.column += 1
            assert self.column <= self.columns, "a line is wider than the terminal"

    def _control(self, given: str, letter: str) -> None:
        match letter:
            case "A":
                self.row = max(0, self.row - int(given or 1))
            case "K":
                assert given == "2"
                self.lines[self.row] = ""
            case "h" | "l":
                assert given == "?25"
                self.hides_cursor = letter == "l"
            case "m":
                pass
            case _:
                raise AssertionError(f"unknown control {given}{letter}")


class Watched(NamedTuple):
    """What stood on the terminal before each redrawing, what was left, and the result."""

    screens: list[str]
    left: str
    result: str
    exit_code: int
    hides_cursor: bool


def on_terminal(
    arguments: list[str], folder: Path, *, rows: int = 40, columns: int = 100
) -> Watched:
    """Run oomdoctor with standard error on a terminal of this size."""
    import pty

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "PYTHONPATH")}
    process = subprocess.Popen(
        [sys.executable, "-m", "oomdoctor", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=follower,
        cwd=folder,
        env={**kept, "TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": str(folder)},
    )
    os.close(follower)
    screen, screens = Screen(rows, columns), []
    for text in _written(leader, process):
        for part in re.split(r"(?=\r\x1b\[2K)", text):  # a redrawing begins so
            if part.startswith("\r\x1b[2K") and screen.shown():
                screens.append(screen.shown())
            screen.write(part)
    assert process.stdout is not None
    result = process.stdout.read().decode()
    process.stdout.close()
    os.close(leader)
    return Watched(
        screens, screen.shown(), result, process.wait(timeout=PATIENCE_S), screen.hides_cursor
    )


def _written(leader: int, process: subprocess.Popen[bytes]) -> list[str]:
    """Return what is written to the terminal until the program ends."""
    until, data = time.monotonic() + PATIENCE_S, b""
    while time.monotonic() < until:
        if select.select([leader], [], [], 0.1)[0]:
            try:
                part = os.read(leader, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            data += part
        elif process.poll() is not None:
            break
    return [data.decode()]
