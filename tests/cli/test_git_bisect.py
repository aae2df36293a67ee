"""`oomdoctor bisect --git-bisect` speaks to `git bisect run`, which finds the planted commit."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import clean_environment
from tests.unit.lab.stub_smi import StubSmi, card

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

# says what PyTorch says where rows times the bytes of a row are too much
SCRIPT = """\
import sys
if int(sys.argv[1]) * {row} > 100:
    sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a"
             " total capacity of 23.64 GiB of which 1.00 GiB is free.")
"""
COMMITS = 12
PLANTED, BROKEN = 8, 5
BISECT = (sys.executable, "-m", "oomdoctor", "bisect", "--git-bisect", "--backend", "cpu")
TRAIN = ("--axis", "batch=8", "--", sys.executable, "train.py", "{batch}")


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@t", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env=clean_environment() | {"GIT_CONFIG_GLOBAL": "/dev/null"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    for number in range(1, COMMITS + 1):
        text = SCRIPT.format(row=20 if number >= PLANTED else 10)
        (folder / "train.py").write_text("break\n" if number == BROKEN else text)
        (folder / "number").write_text(str(number))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"commit {number}")
    return folder


def test_the_planted_commit_is_found(repository: Path) -> None:
    git(repository, "bisect", "start", "HEAD", f"HEAD~{COMMITS - 1}")

    told = git(repository, "bisect", "run", *BISECT, *TRAIN)

    assert f"commit {PLANTED}" in told.partition("is the first bad commit")[2]
    assert git(repository, "status", "--short") == ""


@pytest.mark.parametrize(
    ("commit", "words", "status"),
    [
        (PLANTED - 1, TRAIN, 0),
        (PLANTED, TRAIN, 1),
        (BROKEN, TRAIN, 125),
        (PLANTED, ("--", "sh", "-c", "exec python3 train.py 9"), 1),
        (PLANTED, ("--axis", "batch=1..8", *TRAIN[2:]), 128),
        (PLANTED, ("--axis", "batch=8"), 128),
        (PLANTED, ("--no-such-option", *TRAIN), 128),
        (PLANTED, ("--gpu", "no such card", *TRAIN), 128),
    ],
    ids=["fits", "oom", "crash", "no-axis", "range", "no-command", "option", "card"],
)
def test_what_a_commit_is_told_to_be(
    repository: Path, commit: int, words: tuple[str, ...], status: int
) -> None:
    git(repository, "checkout", "-q", f"HEAD~{COMMITS - commit}")

    done = subprocess.run([*BISECT, *words], cwd=repository, env=clean_environment(), check=False)

    assert done.returncode == status


def test_a_card_that_others_use_says_nothing_of_a_commit(
    run_python: RunPython, tmp_path: Path
) -> None:
    smi = StubSmi(tmp_path)
    smi.tells(card(free=4000, processes=[(4711, "python", 20000)]))
    environment = {"PATH": f"{smi.folder}:{os.environ['PATH']}"}

    words = ("--git-bisect", "--backend", "cuda", *TRAIN)
    done = run_python("-m", "oomdoctor", "bisect", *words, cwd=tmp_path, environment=environment)

    assert done.returncode == 125
    assert b"process 4711" in done.stderr
