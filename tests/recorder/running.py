"""Starts `oomdoctor run` as a user does, and reads the bundle that it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from oomdoctor.recorder.bundle import read_bundle
from oomdoctor.recorder.places import bundles
from tests.conftest import clean_environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from oomdoctor.recorder.bundle import Run

PATIENCE_S = 300
QUIET = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class Recorded(NamedTuple):
    """How a run ended, what it printed, and its bundle."""

    code: int
    output: bytes
    errors: bytes
    run: Run

    @property
    def told(self) -> dict[str, Any]:
        """What run.json says."""
        return dict(self.run.told)

    @property
    def causes(self) -> list[str]:
        """The causes of its diagnosis, most probable first."""
        text = (self.run.folder / "diagnosis.json").read_text(encoding="utf-8")
        return [one["cause"] for one in json.loads(text)["causes"]]

    @property
    def last_line(self) -> str:
        """The last line on standard error."""
        return self.errors.decode(errors="replace").splitlines()[-1]


def words(*options: str) -> list[str]:
    """Return the words that start a recording."""
    return [sys.executable, "-m", "oomdoctor", "run", *options, "--"]


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a recording under test."""
    return clean_environment() | QUIET | more


def record(
    folder: Path,
    *command: str,
    options: tuple[str, ...] = (),
    stdin: bytes = b"",
    wrapped: tuple[str, ...] = (),
) -> Recorded:
    """Record a command to its end, in a folder of its own."""
    done = subprocess.run(
        [*wrapped, *words(*options), *command],
        cwd=folder,
        input=stdin,
        capture_output=True,
        env=environment(),
        timeout=PATIENCE_S,
        check=False,
    )
    return Recorded(done.returncode, done.stdout, done.stderr, last_run(folder))


@contextmanager
def under_way(
    folder: Path, *command: str, options: tuple[str, ...] = ("-q",)
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Record a command that prints "ready", and go on as soon as it does; with its output."""
    with subprocess.Popen(
        [*words(*options), *command],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process, process.stdout


def last_run(folder: Path) -> Run:
    """Return the newest run of a folder."""
    return read_bundle(bundles(folder / ".oomdoctor" / "runs")[0])


def unchanged(folder: Path, *command: str) -> bytes:
    """Return what a command prints without us."""
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        env=os.environ | QUIET,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.stdout
