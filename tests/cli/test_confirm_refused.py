"""What ends a run of `oomdoctor confirm` before its verdict: others on the card, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from oomdoctor.lab.lock import locked
from tests.cli.test_confirm import mended, script
from tests.conftest import clean_environment
from tests.unit.lab.stub_smi import UUID, StubSmi, card

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

CAUSE = "loss-graph-retained"


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StubSmi:
    made = StubSmi(tmp_path)
    monkeypatch.setenv("PATH", f"{made.folder}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return made


def environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "TMPDIR")}


def test_a_card_that_others_use_is_refused_before_any_trial(
    run_python: RunPython, tmp_path: Path, smi: StubSmi
) -> None:
    smi.tells(card(free=4000, processes=[(4711, "/opt/their/python", 20000)]))
    words = (CAUSE, *mended(tmp_path), "--", "touch", "ran")

    done = run_python("-m", "oomdoctor", "confirm", *words, cwd=tmp_path, environment=environment())

    assert done.returncode == 5, done.stderr.decode()
    assert "process 4711 (python, 19.53 GiB)" in done.stderr.decode()
    assert not (tmp_path / "ran").exists()


def test_a_card_with_a_run_of_ours_is_refused(
    run_python: RunPython, tmp_path: Path, smi: StubSmi
) -> None:
    smi.tells(card())
    words = (CAUSE, *mended(tmp_path), "--", *script(tmp_path))

    with locked([UUID], folder=tmp_path):
        done = run_python(
            "-m", "oomdoctor", "confirm", *words, cwd=tmp_path, environment=environment()
        )

    assert done.returncode == 5, done.stderr.decode()
    assert f"process {os.getpid()}" in done.stderr.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_prints_that_nothing_is_shown_yet(tmp_path: Path, number: signal.Signals) -> None:
    waits = "import pathlib, time; pathlib.Path('on').touch(); time.sleep(60)"
    command = script(tmp_path, "waits.py", waits)
    words = (CAUSE, "--backend", "cpu", *mended(tmp_path), "-f", "json", "--", *command)
    process = subprocess.Popen(
        [sys.executable, "-m", "oomdoctor", "confirm", *words],
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    while not (tmp_path / "on").exists() and process.poll() is None:
        time.sleep(0.05)

    process.send_signal(number)
    output, _ = process.communicate(timeout=60)

    assert process.returncode == 130
    told = json.loads(output)
    assert (told["stopped"], [one["verdict"] for one in told["confirmations"]]) == (
        "interrupted",
        ["inconclusive"],
    )
