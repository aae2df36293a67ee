"""A command in a terminal stays in a terminal: its size, its keys, its session."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.hang import no_hang
from tests.recorder.running import environment, last_run, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
ROWS, COLUMNS = 30, 90
# makes the terminal the one of its session, as a login does, then becomes the command
LOGIN = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
LOGIN += "os.execv(sys.argv[1], sys.argv[1:])"


@pytest.fixture(autouse=True)
def _guard() -> Iterator[None]:
    with no_hang():
        yield


def in_terminal(folder: Path, script: str, keys: bytes) -> tuple[str, int]:
    """Record a Python script in a terminal; the keys are pressed once it prints `ready`."""
    command = [*words("-q"), sys.executable, "-c", script]
    terminal, end = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", LOGIN, *command],
        cwd=folder,
        stdin=end,
        stdout=end,
        stderr=end,
        env=environment(),
        start_new_session=True,
    )
    os.close(end)
    printed = b""
    with suppress(OSError):
        while piece := os.read(terminal, 4096):
            printed += piece
            if keys and b"ready" in printed:
                os.write(terminal, keys)
                keys = b""
    os.close(terminal)
    return printed.decode(), process.wait()


def test_all_three_streams_stay_a_terminal_of_the_same_size(tmp_path: Path) -> None:
    script = (
        "import os\n"
        "print(*(os.isatty(n) for n in range(3)), *os.get_terminal_size())\n"
        "print('same session', os.getsid(0) == os.getsid(os.getppid()))\n"
        "print('same group', os.getpgid(0) == os.getpgid(os.getppid()))\n"
        "print(input('ready? ').upper())\n"
    )

    printed, code = in_terminal(tmp_path, script, b"yes\n")

    assert printed.replace("\r\n", "\n") == (
        f"True True True {COLUMNS} {ROWS}\nsame session True\nsame group True\nready? yes\nYES\n"
    )
    assert code == 0
    assert b"YES\n" in (last_run(tmp_path).folder / "output.log").read_bytes()


def test_a_key_that_interrupts_reaches_the_command_once(tmp_path: Path) -> None:
    script = (
        "import signal, time\n"
        "hits = []\n"
        "signal.signal(signal.SIGINT, lambda *_: hits.append(1))\n"
        "print('ready', flush=True)\n"
        "while not hits: time.sleep(0.05)\n"
        "time.sleep(0.5)\n"
        "raise SystemExit(10 + len(hits))\n"
    )

    _, code = in_terminal(tmp_path, script, b"\x03")

    run = last_run(tmp_path)
    assert code == 11
    signals = [(one["signal"], one.get("terminal")) for one in run.told["signals"]]
    assert signals == [(2, True)]
    assert run.told["outcome"] == "interrupted"
