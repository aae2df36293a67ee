"""A shell runs programs on virtual cards."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from oomdoctor.errors import InputError
from oomdoctor.virtual import __main__ as command
from oomdoctor.virtual.run import VirtualRun
from oomdoctor.virtual.unmodelled import Read, Unmodelled

GAPS = Unmodelled(reads=(Read("train.py:1 in f", 2),))
RUN = VirtualRun(exit_code=3, output="", errors="", unmodelled=GAPS)


def called(monkeypatch: pytest.MonkeyPatch, run: VirtualRun, *words: str) -> tuple[int, Any]:
    calls: list[Any] = []

    def run_python(arguments: list[str], **named: object) -> VirtualRun:
        calls.append((arguments, named))
        return run

    monkeypatch.setattr(command, "run_python", run_python)
    monkeypatch.setattr(sys, "argv", ["virtual", *words])
    return command.main(), calls[0]


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (("train.py", "--lr", "1"), ["train.py", "--lr", "1"]),
        (("--", "-m", "pytest", "-q"), ["-m", "pytest", "-q"]),
    ],
)
def test_a_program_gets_its_own_arguments(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], program: list[str]
) -> None:
    _, (arguments, named) = called(monkeypatch, RUN, "--card", "NVIDIA L4", "--count", "2", *words)

    assert arguments == program
    assert (named["card"].name, named["count"]) == ("NVIDIA L4", 2)


def test_the_exit_code_is_the_programs_and_gaps_are_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = called(monkeypatch, RUN, "train.py")

    assert code == 3
    assert "2 reads of values" in capsys.readouterr().err


def test_a_program_that_was_stopped_has_the_exit_code_of_a_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = VirtualRun(exit_code=None, output="", errors="", unmodelled=Unmodelled())

    code, (_, named) = called(monkeypatch, stopped, "--timeout", "5", "train.py")

    assert (code, named["timeout_s"]) == (124, 5)


def test_an_error_is_said_with_its_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise InputError("no C compiler", hint="install gcc")

    monkeypatch.setattr(command, "run_python", fail)
    monkeypatch.setattr(sys, "argv", ["virtual", "train.py"])

    assert command.main() == 2
    assert capsys.readouterr().err == "no C compiler\n  hint: install gcc\n"
