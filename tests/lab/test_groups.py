"""A command is kept so that nothing of it outlives the trial, whoever dies first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oomdoctor.lab import keeper
from oomdoctor.lab.groups import Group
from tests.hang import no_hang

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")

# a process, a child of it, and a grandchild in a session of its own, as torchrun starts its ranks
FAMILY = """
import subprocess, sys, time
inner = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; "
inner += "time.sleep(600)'], start_new_session=True); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", inner], start_new_session=True)
print("started", flush=True)
time.sleep(600)
"""
IGNORANT = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
LAB = """
import os, signal, sys, time
from pathlib import Path
from oomdoctor.lab.groups import Group
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored
with Group([sys.executable, "-c", {program!r}], folder=Path("/"), environment=dict(os.environ),
           output=2) as group:
    time.sleep(1.0)
    print(group.keeper_pid, group.mark, flush=True)
    time.sleep(600)
"""
# one trial after the other; a file named by its mark is there before each
RESTLESS = """
import os, sys, time
from pathlib import Path
from oomdoctor.lab.groups import Group
while True:
    group = Group([sys.executable, "-c", {program!r}], folder=Path("/"),
                  environment=dict(os.environ), output=2)
    Path(os.environ["TRIALS"], group.mark).touch()
    with group:
        time.sleep(0.2)
"""


def marked(mark: str) -> list[int]:
    """Return the live processes that carry a mark."""
    wanted = f"OOMDOCTOR_TRIAL_MARK={mark}".encode()
    found = []
    for pid in keeper.pids():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0"):
            found.append(pid)
    return found


def is_gone(mark: str, seconds: float = 30.0) -> bool:
    until = time.monotonic() + seconds
    while marked(mark) and time.monotonic() < until:
        time.sleep(0.05)
    return not marked(mark)


def started_family(group: Group) -> list[int]:
    until = time.monotonic() + 30
    while len(group.processes()) < 3 and time.monotonic() < until:
        time.sleep(0.02)
    return list(group.processes())


@pytest.fixture(autouse=True)
def _guard() -> Iterator[None]:
    with no_hang():
        yield


@pytest.mark.parametrize(
    ("program", "code"),
    [("pass", 0), ("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", -9)],
)
def test_the_exit_code_is_that_of_the_command(program: str, code: int) -> None:
    with Group(
        [sys.executable, "-c", program],
        folder=Path("/"),
        environment=dict(os.environ),
        output=2,
    ) as group:
        while not group.is_over():
            group.hear(0.1)

        assert code == group.exit_code()


def test_a_command_that_does_not_exist_is_told() -> None:
    with Group(["/nowhere/at/all"], folder=Path("/"), environment={}, output=2) as group:
        assert group.problem == "No such file or directory"


def test_a_folder_that_does_not_exist_is_told() -> None:
    with Group(["true"], folder=Path("/nowhere"), environment={}, output=2) as group:
        assert group.problem is not None
        assert "/nowhere" in group.problem


def test_a_stop_ends_children_in_sessions_of_their_own() -> None:
    with Group(
        [sys.executable, "-c", FAMILY], folder=Path("/"), environment=dict(os.environ), output=2
    ) as group:
        family = started_family(group)
        group.stop()

    assert len(family) == 3
    assert marked(group.mark) == []


def test_a_stop_ends_a_process_that_ignores_the_polite_signal() -> None:
    with Group(
        [sys.executable, "-c", IGNORANT], folder=Path("/"), environment=dict(os.environ), output=2
    ) as group:
        time.sleep(0.5)

    assert marked(group.mark) == []


def test_children_that_a_command_leaves_behind_are_ended() -> None:
    program = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', "
        "'import time; time.sleep(600)'], start_new_session=True)"
    )

    with Group(
        [sys.executable, "-c", program], folder=Path("/"), environment=dict(os.environ), output=2
    ) as group:
        while not group.is_over():
            group.hear(0.1)

    assert marked(group.mark) == []


@pytest.mark.slow
@pytest.mark.parametrize("who", ["lab", "keeper"])
def test_a_kill_of_whoever_watches_leaves_no_orphan(root: Path, who: str) -> None:
    lab = subprocess.Popen(
        [sys.executable, "-c", LAB.format(program=FAMILY)],
        cwd=root,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert lab.stdout is not None
    keeper_pid, mark = lab.stdout.readline().decode().split()
    before = marked(mark)

    os.kill(lab.pid if who == "lab" else int(keeper_pid), signal.SIGKILL)
    if who == "keeper":  # the lab, which lives, finds out when it looks at its group
        time.sleep(0.2)
        lab.send_signal(signal.SIGINT)
    lab.wait(60)
    lab.stdout.close()

    assert len(before) == 4
    assert is_gone(mark)


def test_a_process_that_got_the_number_of_another_one_is_not_signalled() -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    start = keeper.start_time(other.pid)
    assert start is not None

    sent = keeper.send(other.pid, start - 1, signal.SIGKILL)
    lives = other.poll() is None
    really_sent = keeper.send(other.pid, start, signal.SIGKILL)

    assert not sent
    assert lives
    assert really_sent
    assert other.wait(30) == -signal.SIGKILL


def test_only_descendants_are_found() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    mine: Sequence[int] = list(keeper.descendants())
    of_the_child = list(keeper.descendants(child.pid))
    child.kill()
    child.wait()

    assert child.pid in mine
    assert os.getpid() not in mine
    assert of_the_child == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_kill_at_any_moment_leaves_no_orphan(root: Path, tmp_path: Path, seed: int) -> None:
    lab = subprocess.Popen(
        [sys.executable, "-c", RESTLESS.format(program=FAMILY)],
        cwd=root,
        env={**os.environ, "TRIALS": str(tmp_path)},
        start_new_session=True,
    )

    time.sleep(1.5 * (seed * 0.618 % 1.0))  # the moments are spread evenly
    lab.kill()
    lab.wait(60)

    time.sleep(0.2)  # of a keeper that has just been started
    marks = [one.name for one in tmp_path.iterdir()]
    assert [mark for mark in marks if not is_gone(mark)] == []
