"""Standard output and error of a command, passed on byte by byte and kept: pipes, or a terminal.

A stream that leads to a terminal is replaced by a terminal of the same size, any other by a pipe of
its own. A process of its own copies: it stays when the recorder is killed, and when the command has
left something behind that still prints, so that nothing ever writes into a broken pipe.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys
import termios
from contextlib import suppress
from typing import TYPE_CHECKING

from oomdoctor.recorder.output_file import OutputFile

if TYPE_CHECKING:
    from pathlib import Path

_OUTPUT, _ERROR = 1, 2
_CHUNK = 1 << 16
_OUTPUT_FLAGS = 1  # where termios keeps them


class Streams:
    """What a command writes to, by its own descriptor: `ends`; and what is read of it.

    `sources` says where each descriptor that is read is copied to; `screens` are the masters of
    terminals with the terminal that each stands for.
    """

    def __init__(self) -> None:
        """Make a pipe or a terminal for each stream that is open."""
        self.ends: dict[int, int] = {}
        self.sources: dict[int, int] = {}
        self.screens: dict[int, int] = {}
        for number in (_OUTPUT, _ERROR):
            try:
                os.fstat(number)
            except OSError:
                continue  # closed for us, closed for the command
            if os.isatty(number):
                self._add_terminal(number)
            else:
                read_end, self.ends[number] = os.pipe()
                self.sources[read_end] = number

    def resize(self) -> None:
        """Give each terminal the size of the one that it stands for."""
        for master, number in self.screens.items():
            with suppress(OSError):
                size = fcntl.ioctl(number, termios.TIOCGWINSZ, bytes(8))
                fcntl.ioctl(master, termios.TIOCSWINSZ, size)

    def start_copying(self, folder: Path) -> int:
        """Start the process that copies until nobody writes any more; return its number."""
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child:
            # a pipe that we held, too, would never break
            for source in self.sources.keys() - self.screens.keys():
                os.close(source)
            self.sources = {}
            return child
        try:
            self.give_away()
            _copy(self.sources, OutputFile(folder))
        finally:
            os._exit(0)

    def give_away(self) -> None:
        """Close the ends of the command: it has its own by now."""
        for end in set(self.ends.values()):
            os.close(end)
        self.ends = {}

    def _add_terminal(self, number: int) -> None:
        """Make a terminal, or take the one that stands for the same terminal already."""
        same = [one for one in self.ends if os.isatty(one) and _is_same(one, number)]
        if same:
            self.ends[number] = self.ends[same[0]]
            return
        master, end = os.openpty()
        with suppress(OSError, termios.error):
            mode = termios.tcgetattr(number)
            # the terminal itself turns line feeds into what it needs, once
            mode[_OUTPUT_FLAGS] &= ~termios.OPOST
            termios.tcsetattr(end, termios.TCSANOW, mode)
        self.ends[number] = end
        self.sources[master] = number
        self.screens[master] = number
        self.resize()


def _is_same(one: int, other: int) -> bool:
    return os.fstat(one).st_rdev == os.fstat(other).st_rdev


def _copy(sources: dict[int, int], output: OutputFile) -> None:
    """Copy until every source has ended; where nobody takes the copy, the writer learns that."""
    poll = select.poll()
    for source in sources:
        poll.register(source, select.POLLIN)
    left = set(sources)
    while left:
        for source, _ in poll.poll():
            data = _read(source)
            if data:
                output.write(data)
            if not data or not _write(sources[source], data):
                poll.unregister(source)
                os.close(source)
                left.discard(source)
    output.finish()


def _read(source: int) -> bytes:
    try:
        return os.read(source, _CHUNK)
    except OSError:  # a terminal that nobody holds any more
        return b""


def _write(target: int, data: bytes) -> bool:
    """Write all of it, however slowly it is taken; False where nobody takes it any more."""
    left = memoryview(data)
    try:
        while left:
            left = left[_written(target, left) :]
    except OSError:
        return False
    return True


def _written(target: int, data: memoryview) -> int:
    """Write what is taken at once, or wait until something is."""
    try:
        return os.write(target, data)
    except BlockingIOError:
        select.select([], [target], [])
        return 0
