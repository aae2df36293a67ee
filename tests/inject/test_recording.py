"""A recorded program is the same program: what it prints, how it ends, what it can see."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.inject.recorded import Recorded, command, environment, start

INJECT = Path(__file__).resolve().parents[2] / "oomdoctor" / "inject"
FAILS = """
import sys

def fails():
    raise MemoryError("gone")

print("out")
print("err", file=sys.stderr)
fails()
"""
HOOKED = """
import sys
sys.excepthook = lambda kind, value, trace: print("mine", kind.__name__)
raise ValueError("x")
"""


@pytest.fixture
def torch_of_ours(tmp_path: Path) -> Path:
    """A folder with a package `torch` that has nothing of what is hooked."""
    (tmp_path / "lib" / "torch").mkdir(parents=True)
    text = "__version__ = '0'"
    (tmp_path / "lib" / "torch" / "__init__.py").write_text(text, encoding="utf-8")
    return tmp_path / "lib"


def both(folder: Path, program: str) -> tuple[Recorded, Recorded]:
    """Run a program without and with the recorder."""
    return start(folder, program, recorded=False), start(folder, program)


@pytest.mark.parametrize("program", [FAILS, "import os; os._exit(7)", "import sys; sys.exit(3)"])
def test_a_program_prints_and_ends_as_without_us(tmp_path: Path, program: str) -> None:
    plain, recorded = both(tmp_path, program)

    assert recorded.code == plain.code
    assert recorded.stdout == plain.stdout
    assert recorded.stderr == plain.stderr


def test_a_program_finds_its_path_as_without_us(tmp_path: Path) -> None:
    plain, recorded = both(tmp_path, "import sys; print(sys.path)")

    assert recorded.stdout == plain.stdout


def test_a_program_without_torch_leaves_nothing_unless_it_fails(tmp_path: Path) -> None:
    assert start(tmp_path, "print(1)").processes == {}

    failed = start(tmp_path, FAILS)

    kinds = [one["type"] for one in failed.told("hello", "error", "oom", "exit")]
    assert kinds == ["hello", "error", "oom", "exit"]
    (error,) = failed.told("error")
    assert [one[1] for one in error["frames"]] == ["fails", "<module>"]


def test_a_failure_of_host_memory_leaves_its_event(tmp_path: Path) -> None:
    failed = start(tmp_path, FAILS)

    (folder,) = failed.run.glob("processes/*/oom-1")
    assert {path.name for path in folder.iterdir()} == {"event.json", "versions.json"}
    (event,) = failed.told("oom")
    assert (event["device"], event["exception"]) == (None, "MemoryError")


def test_an_exception_is_told_though_the_program_prints_it_itself(tmp_path: Path) -> None:
    recorded = start(tmp_path, HOOKED)

    assert recorded.stdout == "mine ValueError\n"
    assert [one["exception"] for one in recorded.told("error")] == ["ValueError"]


def test_a_fault_of_ours_is_told_and_not_printed(tmp_path: Path, torch_of_ours: Path) -> None:
    recorded = start(tmp_path, "import torch; print(torch.__version__)", paths=(torch_of_ours,))

    assert (recorded.stdout, recorded.stderr) == ("0\n", "")
    assert recorded.told("fault")


def test_a_folder_that_cannot_be_made_is_nobodys_problem(tmp_path: Path) -> None:
    (tmp_path / "bundle").write_text("a file", encoding="utf-8")

    recorded = start(tmp_path, FAILS)

    assert recorded.code == 1
    assert recorded.stderr.startswith("err\nTraceback")


def test_settings_that_cannot_be_read_are_nobodys_problem(tmp_path: Path) -> None:
    recorded = start(tmp_path, "print(1); raise ValueError", OOMDOCTOR_RUN_SETTINGS="{")

    assert (recorded.code, recorded.stdout) == (1, "1\n")
    assert recorded.stderr.endswith("\nValueError\n")
    assert list(recorded.run.glob("processes/*.fault.txt"))


def test_the_start_up_of_the_program_runs_and_fails_as_without_us(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('mine'); raise OSError('x')", encoding="utf-8")
    program = "import sitecustomize; print('END')"

    plain = start(tmp_path, program, paths=(own,), recorded=False)
    recorded = start(tmp_path, program, paths=(own,))

    assert "mine\n" in plain.stdout
    assert (recorded.code, recorded.stdout.count("mine")) == (
        plain.code,
        plain.stdout.count("mine"),
    )
    assert recorded.stderr.splitlines()[:2] == plain.stderr.splitlines()[:2]


def test_what_was_told_outlives_a_killed_process(tmp_path: Path) -> None:
    program = """
import sys, threading, time
thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()
print("ready", flush=True)
time.sleep(60)
"""
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    with subprocess.Popen(
        command(tmp_path / "program.py"),
        env=environment(tmp_path / "bundle"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)

    (path,) = (tmp_path / "bundle").glob("processes/*/events.jsonl")
    assert '"exception":"ZeroDivisionError"' in path.read_text(encoding="utf-8")


def test_a_program_that_closes_every_descriptor_keeps_its_own_files(tmp_path: Path) -> None:
    program = """
import os, threading

def fail():
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()

fail()
os.closerange(3, 4096)
mine = [os.open("mine.txt", os.O_CREAT | os.O_WRONLY) for _ in range(400)]
os.chdir("/")
fail()
"""
    recorded = start(tmp_path, program)

    assert (tmp_path / "mine.txt").read_bytes() == b""
    assert len(recorded.told("error")) == 2


def test_a_forked_child_tells_in_a_folder_of_its_own(tmp_path: Path) -> None:
    program = """
import os, threading

def fail():
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()

fail()
child = os.fork()
if child == 0:
    fail()
    os._exit(0)
os.waitpid(child, 0)
silent = os.fork()
if silent == 0:
    os._exit(0)
os.waitpid(silent, 0)
"""
    recorded = start(tmp_path, program)

    told = [[one["type"] for one in messages] for messages in recorded.processes.values()]
    assert sorted(told, key=len) == [["hello", "error"], ["hello", "error", "exit"]]


def test_a_trial_goes_before_a_recording(tmp_path: Path) -> None:
    recorded = start(tmp_path, FAILS, OOMDOCTOR_TRIAL_SOCKET="/nowhere/s", OOMDOCTOR_TRIAL="{}")

    assert recorded.processes == {}


def test_times_of_messages_are_those_of_the_clock(tmp_path: Path) -> None:
    before = time.time()

    recorded = start(tmp_path, FAILS)

    assert all(before - 1 <= one["t"] <= time.time() + 1 for one in recorded.told("error", "exit"))


@pytest.mark.parametrize("path", sorted(INJECT.rglob("*.py")), ids=lambda one: one.name)
def test_what_is_injected_is_read_by_an_old_python(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))

    imported = {
        name.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "typing"
        for name in node.names
    }
    assert imported <= {"TYPE_CHECKING", "Any"}


def test_what_a_process_held_is_told_with_its_failure(tmp_path: Path) -> None:
    recorded = start(tmp_path, FAILS)

    (event,) = recorded.told("oom")
    assert 0 < event["rss_bytes"] <= event["host_bytes"] < os.sysconf("SC_PHYS_PAGES") * 4096
