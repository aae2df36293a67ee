"""A person at a real pseudo-terminal: runs `diagnose` and types an answer at each prompt."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.facts.questions import questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
PROMPT = "> "
PATIENCE_S = 90


@dataclass
class Sitting:
    """One run of the command in a terminal."""

    exit: int = -1
    screen: str = ""
    result: str = ""
    asked: list[str] = field(default_factory=list)


def sit_down(
    arguments: list[str],
    answer: Callable[[str], str | bytes | None],
    home: Path,
    **environment: str,
) -> Sitting:
    """Run the command; `answer` gets each question's id and returns a line, None to leave."""
    import pty

    sitting = Sitting()
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "oomdoctor", "diagnose", *arguments],
        stdin=follower,
        stdout=subprocess.PIPE,
        stderr=follower,
        cwd=home,
        env={**_environment(home), **environment},
        start_new_session=True,
        preexec_fn=lambda: _own(follower),  # noqa: PLW1509 - the tests start no threads
    )
    os.close(follower)
    for screen in _prompts(leader, process):
        sitting.screen += screen
        question = _question_in(screen)
        if question is not None:
            sitting.asked.append(question)
        line = answer(question or sitting.asked[-1])
        if isinstance(line, bytes):
            os.write(leader, line)
        elif line is None:
            os.write(leader, b"\x04")
        else:
            os.write(leader, f"{line}\n".encode())
    sitting.screen += _REST.pop(leader, "")
    assert process.stdout is not None
    sitting.result = process.stdout.read().decode()
    process.stdout.close()
    sitting.exit = process.wait(timeout=PATIENCE_S)
    os.close(leader)
    return sitting


_REST: dict[int, str] = {}


def heed_interrupts() -> None:
    """Let SIGINT interrupt a child, also where the tests run in the background of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _own(terminal: int) -> None:
    """Make the terminal the process's own, so that its interrupt character is a signal."""
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    heed_interrupts()


def _prompts(leader: int, process: subprocess.Popen[bytes]) -> Iterator[str]:
    """Yield what the screen shows up to each prompt."""
    shown = b""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        ready, _, _ = select.select([leader], [], [], 0.05)
        if ready:
            try:
                more = os.read(leader, 65536)
            except OSError:
                more = b""
            if not more:
                break
            shown += more
        elif process.poll() is not None:
            break
        if shown.endswith(PROMPT.encode()):
            yield shown.decode(errors="replace")
            shown = b""
    else:
        process.kill()  # it waits for an answer that nobody gives: fail instead of hanging
    _REST[leader] = shown.decode(errors="replace")


def _environment(home: Path) -> dict[str, str]:
    kept = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
    own = {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "NO_COLOR": "1", "HOME": str(home)}
    return {**kept, **own, "PYTHONDONTWRITEBYTECODE": "1", "XDG_STATE_HOME": str(home / "state")}


def _question_in(screen: str) -> str | None:
    words = " ".join(screen.split())
    found = [(words.rfind(one.text), name) for name, one in questions().items()]
    at, name = max(found)
    return name if at >= 0 else None
