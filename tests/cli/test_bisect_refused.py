"""What ends a run of `oomdoctor bisect` before its answer: others on the card, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from oomdoctor.lab.lock import locked
from tests.conftest import clean_environment
from tests.unit.lab.stub_smi import UUID, StubSmi, card

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

SCRIPT = ("--", sys.executable, "-c", "print('step')", "{batch}")


def bisect(run_python: RunPython, folder: Path, *rest: str, **more: Any) -> CompletedProcess[bytes]:
    return run_python("-m", "oomdoctor", "bisect", *rest, cwd=folder, **more)


@pytest.fixture
def smi(tmp_path: Path) -> StubSmi:
    return StubSmi(tmp_path)


def on_card(smi: StubSmi, tmp_path: Path) -> dict[str, str]:
    return {"PATH": f"{smi.folder}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}


def refused(done: CompletedProcess[bytes]) -> str:
    assert done.returncode == 5, done.stderr.decode()
    return done.stderr.decode()


def test_a_card_that_others_use_is_refused_before_any_trial(
    run_python: RunPython, tmp_path: Path, smi: StubSmi
) -> None:
    smi.tells(card(free=4000, processes=[(4711, "/opt/their/python", 20000)]))
    command = ("--axis", "batch=1..9", "--", "touch", "ran-{batch}")

    reason = refused(bisect(run_python, tmp_path, *command, environment=on_card(smi, tmp_path)))

    assert "process 4711 (python, 19.53 GiB)" in reason
    assert not list(tmp_path.glob("ran-*"))


def test_a_card_in_slices_is_refused(run_python: RunPython, tmp_path: Path, smi: StubSmi) -> None:
    smi.tells(card(mig="Enabled"))

    done = bisect(
        run_python, tmp_path, "--axis", "batch", *SCRIPT, environment=on_card(smi, tmp_path)
    )

    assert "MIG" in refused(done)


def test_a_card_with_a_run_of_ours_is_refused(
    run_python: RunPython, tmp_path: Path, smi: StubSmi
) -> None:
    smi.tells(card())

    with locked([UUID], folder=tmp_path):
        done = bisect(
            run_python, tmp_path, "--axis", "batch", *SCRIPT, environment=on_card(smi, tmp_path)
        )

    assert f"process {os.getpid()}" in refused(done)


def test_below_a_cap_a_program_that_cannot_be_watched_shows_nothing(
    run_python: RunPython, tmp_path: Path, smi: StubSmi
) -> None:
    smi.tells(card(free=16384, processes=[(4711, "python", 8192)]))
    asked = ("--axis", "batch=1..9", "--share", "-f", "json")

    done = bisect(run_python, tmp_path, *asked, *SCRIPT, environment=on_card(smi, tmp_path))

    assert done.returncode == 4
    values = json.loads(done.stdout)
    assert values["answer"]["bracket"]["fits_at"] is None
    assert "its cap was not in force" in values["trials"][0]["reason"]


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_memory_that_shrinks_while_a_trial_runs_ends_it_and_keeps_what_was_seen(
    run_python: RunPython, tmp_path: Path, smi: StubSmi
) -> None:
    shared = card(free=16384, processes=[(4711, "python", 8192)])
    smi.tells(shared)
    code = (
        "import json, os, pathlib, socket, sys, time; cards = pathlib.Path('cards.json');"
        "rows = int(sys.argv[1]); line = socket.socket(socket.AF_UNIX);"
        "line.connect(os.environ['OOMDOCTOR_TRIAL_SOCKET']);"  # as the hooks do, where torch is
        "told = {'type': 'peak', 'pid': os.getpid(), 'phase': 'load', 'allocated_bytes': 1};"
        "line.sendall(json.dumps(told).encode() + b'\\n');"
        "rows > 1 and (cards.write_text(cards.read_text().replace('16384', '100')),"
        " pathlib.Path('pid').write_text(str(os.getpid())), time.sleep(60))"
    )
    asked = ("--axis", "batch=1..9", "--share", "-f", "json")
    command = ("--", sys.executable, "-c", code, "{batch}")

    done = bisect(run_python, tmp_path, *asked, *command, environment=on_card(smi, tmp_path))

    assert "100.00 MiB free while a trial runs" in refused(done)
    assert [one["values"] for one in json.loads(done.stdout)["trials"]] == [{"batch": 1}]
    assert not runs(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_prints_the_best_so_far(
    tmp_path: Path, smi: StubSmi, number: signal.Signals
) -> None:
    smi.tells(card())
    code = (
        "import sys, time, pathlib;"
        "int(sys.argv[1]) > 1 and (pathlib.Path('on').touch(), time.sleep(60))"
    )
    words = ("--axis", "batch=1..9", "-f", "json", "--", sys.executable, "-c", code, "{batch}")
    process = subprocess.Popen(
        [sys.executable, "-m", "oomdoctor", "bisect", *words],
        cwd=tmp_path,
        env=clean_environment() | on_card(smi, tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    while not (tmp_path / "on").exists() and process.poll() is None:
        time.sleep(0.05)

    process.send_signal(number)
    output, _ = process.communicate(timeout=60)

    assert process.returncode == 130
    answer = json.loads(output)["answer"]
    assert (answer["bracket"]["fits_at"], answer["stopped"]) == (1, "interrupted")


def test_a_terminal_that_goes_away_does_not_take_the_answer_with_it(
    tmp_path: Path, smi: StubSmi
) -> None:
    smi.tells(card())
    code = "import pathlib, time; pathlib.Path('on').touch(); time.sleep(0.5)"
    words = ("--axis", "batch=1..2", "-f", "json", "--", sys.executable, "-c", code, "{batch}")
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "oomdoctor", "bisect", *words],
        cwd=tmp_path,
        env=clean_environment() | on_card(smi, tmp_path),
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        while not (tmp_path / "on").exists() and process.poll() is None:
            time.sleep(0.05)
        os.close(ours)
        output, _ = process.communicate(timeout=60)

    assert process.returncode == 0
    assert json.loads(output)["answer"]["bracket"]["fits_at"] == 2
