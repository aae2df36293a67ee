"""Kill -9 at any moment: nothing is left running, the journal goes on, the answer is the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.conftest import clean_environment

if TYPE_CHECKING:
    from pathlib import Path

MOMENTS, PARTS = 100, 4
PARENT = 0.6  # how often it is the parent that is killed
EDGE = 37
MARK = "OOMDOCTOR_TEST_MARK"
# a child of its own session would outlive a careless parent
SCRIPT = f"""\
#!/bin/sh
setsid sleep 300 &
sleep 0.1
kill $!
[ "$1" -le {EDGE} ] && exit 0
echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total" \\
     "capacity of 23.64 GiB of which 1.00 GiB is free."
exit 1
"""
COMMAND = (
    *(sys.executable, "-m", "oomdoctor", "bisect", "--axis", "batch=30..45", "--backend", "cpu"),
    *("-f", "json"),
)
TRAIN = ("--", "sh", "train.sh", "{batch}")
GONE_SECONDS = 30
NOTHING_THERE = 2


def environment(mark: str) -> dict[str, str]:
    return clean_environment() | {MARK: mark}


def marked(mark: str) -> list[int]:
    """Return the living processes that stem from a run of the test."""
    return [one.pid for one in psutil.process_iter() if _is_marked(one, mark)]


def _is_marked(one: psutil.Process, mark: str) -> bool:
    try:
        return one.environ().get(MARK) == mark and one.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def bracket(output: bytes) -> tuple[float, float, bool]:
    found = json.loads(output)["answer"]["bracket"]
    return found["fits_at"], found["ooms_at"], found["proven"]


def run(folder: Path, *more: str, mark: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *more, *TRAIN],
        cwd=folder,
        env=environment(mark),
        capture_output=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.sh").write_text(SCRIPT)
    return tmp_path


def killed(folder: Path, seconds: float, mark: str, chance: random.Random) -> tuple[int, bytes]:
    """Start a run, kill it or one of its children at some moment; return how it ended."""
    with subprocess.Popen(
        [*COMMAND, *TRAIN],
        cwd=folder,
        env=environment(mark),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        time.sleep(chance.uniform(0, seconds))
        children = [pid for pid in marked(mark) if pid != process.pid]
        own = not children or chance.random() < PARENT
        with suppress(ProcessLookupError):
            os.kill(process.pid if own else chance.choice(children), signal.SIGKILL)
        output, _ = process.communicate(timeout=120)
        return process.returncode, output


def unfinished(folder: Path) -> int:
    """Return how many trials of the last run began and have no result."""
    journals = sorted((folder / ".oomdoctor").glob("*/journal.jsonl"))
    whole = journals[-1].read_bytes().rpartition(b"\n")[0] if journals else b""
    entries = [json.loads(line) for line in whole.splitlines()]
    begun = [one["key"] for one in entries if one["type"] == "begin"]
    ended = [one["result"]["key"] for one in entries if one["type"] == "result"]
    return len(begun) - len(ended)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(PARTS))
def test_a_kill_at_any_moment_leaves_nothing_and_loses_at_most_a_trial(
    folder: Path, seed: int
) -> None:
    began = time.monotonic()
    assert bracket(run(folder, mark="whole").stdout) == (EDGE, EDGE + 1, True)
    seconds = time.monotonic() - began
    chance = random.Random(seed)  # noqa: S311 - moments of a test, no secret

    for moment in range(MOMENTS // PARTS):
        mark = f"{os.getpid()}-{seed}-{moment}"
        code, output = killed(folder, seconds, mark, chance)
        until = time.monotonic() + GONE_SECONDS
        while marked(mark) and time.monotonic() < until:
            time.sleep(0.05)
        assert marked(mark) == []
        assert unfinished(folder) <= 1
        if code == -signal.SIGKILL:
            rest = run(folder, "--resume", mark=mark)
            if rest.returncode == NOTHING_THERE:  # it was killed before its journal had a head
                rest = run(folder, mark=mark)
            code, output = rest.returncode, rest.stdout
        assert (code, bracket(output)) == (0, (EDGE, EDGE + 1, True))
