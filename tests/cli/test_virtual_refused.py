"""Where no virtual card can be had, each command says why, and what to do instead.

The interpreter is a script that names a folder of packages, as a real one would.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.cli.main import run
from oomdoctor.virtual import build as building
from oomdoctor.virtual import run as running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the interpreter is a shell script")
FILES = (
    "torch/__init__.py",
    "torch/lib/libtorch_cpu.so",
    "torch/lib/libtorch_cuda.so",
    "torch-2.13.0.dist-info/METADATA",
    "nvidia/cu13/include/cuda.h",
    "nvidia/cu13/include/cuda_runtime_api.h",
    "nvidia/cu13/include/cublasLt.h",
    "nvidia/cu13/lib/libcudart.so.13",
)
CARD = ("--backend", "virtual", "--gpu", "NVIDIA L4")
COMMANDS = {
    "run": ("run", "--virtual-gpu", "NVIDIA L4", "--", "PYTHON", "train.py"),
    "bisect a command": (
        *("bisect", "--axis", "batch=1..4", *CARD),
        *("--", "PYTHON", "train.py", "{batch}"),
    ),
    "bisect a job": (
        *("bisect", "--axis", "batch=1..4", *CARD),
        *("--model", "Qwen/Qwen2.5-0.5B", "--python", "PYTHON"),
    ),
    "confirm a command": ("confirm", "missing-no-grad", *CARD, "--", "PYTHON", "train.py"),
    "confirm a job": (
        *("confirm", "optimizer-states", *CARD),
        *("--model", "Qwen/Qwen2.5-0.5B", "--python", "PYTHON"),
    ),
}


class Place:
    """An interpreter with its packages, and the machine around it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have all that is needed, and an empty folder to work in."""
        self.site = folder / "site"
        self.python = folder / "bin" / "python"
        self.folder = folder
        self.patch = monkeypatch
        for name in FILES:
            path = self.site / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        self.python.parent.mkdir()
        self.interpreter(f"echo {self.site}")
        (folder / "work").mkdir()
        monkeypatch.chdir(folder / "work")
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))

    def interpreter(self, text: str) -> None:
        """Write what the interpreter does."""
        self.python.write_text(f"#!/bin/sh\n{text}\n")
        self.python.chmod(0o755)

    def compiler(self, text: str) -> None:
        """Let the compiler do this."""
        path = self.folder / "bin" / "mycc"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        self.patch.setenv("CC", str(path))

    def system(self, system: str, machine: str = "x86_64") -> None:
        """Let the machine be of a kind."""
        self.patch.setattr("platform.system", lambda: system)
        self.patch.setattr("platform.machine", lambda: machine)


def without_cuda(place: Place) -> None:
    (place.site / "torch/lib/libtorch_cuda.so").unlink()


def without_libraries(place: Place) -> None:
    for one in ("libtorch_cuda.so", "libtorch_cpu.so"):
        (place.site / "torch/lib" / one).unlink()


def without_torch(place: Place) -> None:
    place.interpreter("echo")


def without_start(place: Place) -> None:
    place.patch.setattr(running, "_LONGEST_START_S", 0.2)
    place.interpreter("sleep 5")


def without_headers(place: Place) -> None:
    (place.site / "nvidia/cu13/include/cuda.h").unlink()


def older(place: Place) -> None:
    (place.site / "torch-2.13.0.dist-info").rename(place.site / "torch-2.3.1+cu121.dist-info")


def without_compiler(place: Place) -> None:
    place.patch.setenv("CC", "")
    place.patch.setenv("PATH", str(place.python.parent))
    # the interpreter is a script of the shell, which is found by its own path
    place.interpreter(f"echo {place.site}")


def with_musl(place: Place) -> None:
    place.patch.setattr("platform.libc_ver", lambda: ("", ""))
    place.patch.setattr(building, "has_musl", lambda: True)


def unwritable(place: Place) -> None:
    (place.folder / "a file").touch()
    place.patch.setenv("XDG_CACHE_HOME", str(place.folder / "a file"))


LACKS: dict[str, tuple[Callable[[Place], None], str]] = {
    "a build for the CPU": (without_cuda, "no CUDA build of torch"),
    "a torch that was installed in part": (without_libraries, "a part of torch"),
    "no torch": (without_torch, "has no torch"),
    "an interpreter that hangs": (without_start, "does not start"),
    "no headers": (without_headers, "lack the header cuda.h"),
    "torch 2.3": (older, "torch 2.3 in"),
    "no compiler": (without_compiler, "no C compiler"),
    "a compiler that fails": (lambda place: place.compiler("echo no >&2; exit 1"), "mycc failed"),
    "musl": (with_musl, "this system has musl"),
    "aarch64": (lambda place: place.system("Linux", "aarch64"), "this is Linux on aarch64"),
    "macOS": (lambda place: place.system("Darwin", "arm64"), "this is macOS on arm64"),
    "Windows": (lambda place: place.system("Windows", "AMD64"), "this is Windows on AMD64"),
    "no cache": (unwritable, "cannot be kept in"),
}


def said(place: Place, command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    words = [str(place.python) if word == "PYTHON" else word for word in COMMANDS[command]]
    code = run(words)
    told = capsys.readouterr()
    assert told.out == ""
    return code, told.err


@LINUX
@pytest.mark.parametrize("lack", LACKS)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_lacks_is_said_with_what_to_do_instead(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    lack: str,
) -> None:
    place = Place(tmp_path, monkeypatch)
    prepare, wanted = LACKS[lack]
    prepare(place)

    code, text = said(place, command, capsys)

    assert code in (2, 3), text
    assert wanted in text
    assert "oomdoctor estimate" in text, "the fall-back"
    assert "Traceback" not in text
    assert list((tmp_path / "work").iterdir()) == []


@LINUX
def test_an_environment_to_make_is_named_for_each_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path, monkeypatch)
    without_cuda(place)

    _, text = said(place, "bisect a job", capsys)

    assert "--virtual-venv ~/oomdoctor-cuda" in text
    assert "--python ~/oomdoctor-cuda/bin/python" in text


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(list(words)) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("command", ["bisect", "confirm"])
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--gpu", "MI300X"), "only NVIDIA's cards can be played"),
        (("--gpu", "L4 x17"), "1 to 16 virtual cards"),
        (("--gpu", "L4", "--executor", "ray"), "--executor local"),
        ((), "no card is known"),
    ],
)
def test_cards_that_cannot_be_played_are_refused(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    words: tuple[str, ...],
    wanted: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    head = {"bisect": ("bisect", "--axis", "n=1..2"), "confirm": ("confirm", "missing-no-grad")}
    tail = ("--", sys.executable, "-c", "{n}")

    text = refusal(capsys, *head[command], "--backend", "virtual", *words, *tail)

    assert wanted in text
    assert list(tmp_path.iterdir()) == []


def test_a_job_gets_one_card(capsys: pytest.CaptureFixture[str]) -> None:
    job = ("--model", "Qwen/Qwen2.5-0.5B", "--axis", "batch")

    text = refusal(capsys, "bisect", *job, "--backend", "virtual", "--gpu", "L4 x2")

    assert "a trial of a job runs on one card" in text


@LINUX
def test_a_compiler_that_hangs_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def hang(*_: Any, **__: Any) -> None:
        raise subprocess.TimeoutExpired("cc", 300)

    place = Place(tmp_path, monkeypatch)
    place.compiler("sleep 1")
    monkeypatch.setattr("oomdoctor.virtual.compiling.subprocess.run", hang)
    monkeypatch.setattr("oomdoctor.virtual.session.site_packages_of", lambda _: place.site)

    code, text = said(place, "run", capsys)

    assert (code, "the C compiler does not run" in text) == (3, True)
    assert "oomdoctor estimate" in text
