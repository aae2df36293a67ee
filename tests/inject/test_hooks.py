"""The way into a process: imports are hooked, other start-ups run, and nothing of it breaks it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.inject import frames
from oomdoctor.inject.imports import Finder
from oomdoctor.inject.line import Line
from oomdoctor.inject.settings import Settings, read

if TYPE_CHECKING:
    from collections.abc import Iterator

HOOKS = Path(__file__).resolve().parents[2] / "oomdoctor" / "inject" / "hooks"


def start(
    folder: Path, program: str, *paths: Path, trial: str = "{}", line: str = "/nowhere/s"
) -> subprocess.CompletedProcess[str]:
    """Run a program with the hooks and other folders in PYTHONPATH."""
    environment = {
        **os.environ,
        "PYTHONPATH": ":".join(map(str, (HOOKS, *paths))),
        "OOMDOCTOR_TRIAL": trial,
        "OOMDOCTOR_TRIAL_SOCKET": line,
    }
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


class Heard:
    """Takes the messages of one connection after the other."""

    def __init__(self, path: str) -> None:
        """Listen at a path."""
        self.messages: list[dict[str, Any]] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        self._socket.listen(8)
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        while True:
            try:
                line, _ = self._socket.accept()
            except OSError:
                return
            with line, line.makefile() as file:
                self.messages += [json.loads(one) for one in file]

    def close(self) -> None:
        """Take what has been sent, and no more."""
        if self._thread.is_alive():
            self._socket.shutdown(socket.SHUT_RDWR)
            self._thread.join(10)
        self._socket.close()


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[Heard]:
    one = Heard(str(tmp_path / "s"))
    yield one
    one.close()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with a package `torch`, which says that it ran."""
    (tmp_path / "lib" / "torch").mkdir(parents=True)
    text = "print('torch runs'); __version__ = '0'"
    (tmp_path / "lib" / "torch" / "__init__.py").write_text(text, encoding="utf-8")
    return tmp_path / "lib"


@pytest.mark.parametrize("trial", ["{}", "{not json", "/no/such/file", "[]", '{"steps": "x"}'])
def test_a_program_runs_to_its_end_whatever_becomes_of_the_hooks(
    tmp_path: Path, package: Path, trial: str
) -> None:
    done = start(tmp_path, "import torch; print('END')", package, trial=trial)

    assert done.returncode == 0
    assert done.stdout == "torch runs\nEND\n"


def test_an_uncaught_exception_is_told_and_printed_as_ever(tmp_path: Path, heard: Heard) -> None:
    program = "def fails():\n    raise MemoryError('gone')\nfails()"

    done = start(tmp_path, program, line=str(tmp_path / "s"))
    heard.close()

    assert done.returncode == 1
    assert done.stderr.endswith("MemoryError: gone\n")
    (message,) = heard.messages
    assert (message["type"], message["exception"]) == ("error", "MemoryError")
    assert [one[1] for one in message["frames"]] == ["fails", "<module>"]


def test_an_exception_in_a_thread_is_told_as_one(tmp_path: Path, heard: Heard) -> None:
    program = "import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start(); t.join()"

    done = start(tmp_path, program, line=str(tmp_path / "s"))
    heard.close()

    assert done.returncode == 0
    assert [(one["exception"], one["thread"]) for one in heard.messages] == [
        ("ZeroDivisionError", True)
    ]


def test_a_fault_of_a_hook_is_told_and_swallowed(
    tmp_path: Path, package: Path, heard: Heard
) -> None:
    done = start(tmp_path, "import torch", package, line=str(tmp_path / "s"))
    heard.close()

    assert done.returncode == 0  # that torch has no optimizers to hook
    assert "fault" in {one["type"] for one in heard.messages}


def test_every_other_start_up_runs_once_in_the_order_of_the_path(tmp_path: Path) -> None:
    again = """
import os, sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
print({name!r})
here = os.path.dirname(os.path.abspath(__file__))
spec = PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p) != here])
spec.loader.exec_module(module_from_spec(spec))
"""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    (tmp_path / "first" / "sitecustomize.py").write_text(
        again.format(name="first"), encoding="utf-8"
    )
    (tmp_path / "second" / "sitecustomize.py").write_text("print('second')", encoding="utf-8")

    done = start(tmp_path, "print('END')", tmp_path / "first", tmp_path / "second")

    assert done.stderr == ""
    assert done.stdout == "first\nsecond\nEND\n"


def test_a_module_that_is_waited_for_is_patched_after_it_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "waited_for_by_a_test.py").write_text("value = 1", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    finder = Finder()
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])

    finder.when_imported("waited_for_by_a_test", lambda one: setattr(one, "value", one.value + 1))
    module = import_module("waited_for_by_a_test")

    assert module.value == 2
    assert "exec_module" not in vars(module.__loader__)
    finder.when_imported("waited_for_by_a_test", lambda one: setattr(one, "value", 7))
    assert module.value == 7


def test_a_forked_child_speaks_over_a_line_of_its_own(tmp_path: Path, heard: Heard) -> None:
    line = Line(str(tmp_path / "s"))
    line.send({"type": "parent"})

    child = os.fork()
    if child == 0:
        line.forget()
        line.send({"type": "child"})
        os._exit(0)
    os.waitpid(child, 0)
    line.send({"type": "parent again"})
    line.forget()
    heard.close()

    assert sorted(one["type"] for one in heard.messages) == ["child", "parent", "parent again"]


def test_a_line_whose_other_end_is_gone_drops_messages(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        line = Line(str(tmp_path / "s"))
        assert line.send({"type": "a"})
        taken, _ = listener.accept()
        assert not line.is_closed()
        taken.close()

        assert line.is_closed()
        assert not (line.send({"type": "b"}) and line.send({"type": "c"}))
    line.forget()


def test_settings_are_read_from_a_text_or_a_file(tmp_path: Path) -> None:
    text = '{"device": "cpu", "steps": 0, "cap_bytes": 5, "saves": true, "hooks": {"a": {"b": 1}}}'
    (tmp_path / "trial.json").write_text(text, encoding="utf-8")

    for given in (text, str(tmp_path / "trial.json")):
        settings = read({"OOMDOCTOR_TRIAL": given})
        assert (settings.device, settings.steps, settings.cap_bytes) == ("cpu", None, 5)
        assert (settings.evaluates, settings.saves) == (False, True)
        assert settings.hooks == {"a": {"b": 1}}
    assert Settings({}).hooks == {}


def test_frames_are_the_innermost_first_and_none_of_ours() -> None:
    def inner() -> frames.Frames:
        return frames.of_stack(sys._getframe())

    found = inner()

    assert [one[1] for one in found[:2]] == [
        "inner",
        "test_frames_are_the_innermost_first_and_none_of_ours",
    ]
    assert frames.HERE.endswith("inject")
