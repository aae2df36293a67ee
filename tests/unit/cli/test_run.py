"""What a command line comes to: exit codes, streams, and failures of every kind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from oomdoctor.cli.diagnose import exit_code
from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.main import run
from oomdoctor.errors import InputError, Location
from oomdoctor.model.core import Finding, RuleFault, Verdict
from oomdoctor.model.enums import Maturity, Severity, Truth
from oomdoctor.model.plan import Diagnosis
from tests.cli.sitting import heed_interrupts

if TYPE_CHECKING:
    from pathlib import Path


def answered(answer: str, **more: object) -> Diagnosis:
    values = {"answer": answer, "resource": "unknown", "conclusive": False, "headline": "x"}
    return Diagnosis(**(values | more))  # type: ignore[arg-type] - the caller gives field names


def finding(severity: Severity) -> Finding:
    return Finding(
        code="CFG9001",
        cause="x",
        title="x",
        severity=severity,
        maturity=Maturity.STABLE,
        probability=1.0,
        gate=Verdict(truth=Truth.TRUE),
    )


WARNING = (finding(Severity.WARNING),)
PIPE = '"$0" -m oomdoctor facts | head -1; exit ${PIPESTATUS[0]}'
FAULT = (RuleFault(code="ACT2001", message="broken"),)


@pytest.mark.parametrize(
    ("diagnosis", "fail_on", "strict", "expected"),
    [
        (answered("cause"), None, False, ExitCode.DONE),
        (answered("not_gpu_oom"), None, False, ExitCode.DONE),
        (answered("nothing_found"), None, False, ExitCode.DONE),
        (answered("need_evidence"), None, False, ExitCode.INCONCLUSIVE),
        (answered("cause", causes=WARNING), "warning", False, ExitCode.FINDINGS),
        (answered("cause", causes=WARNING), "error", False, ExitCode.DONE),
        (answered("need_evidence", causes=WARNING), "info", False, ExitCode.INCONCLUSIVE),
        (answered("nothing_found", side_findings=WARNING), "info", False, ExitCode.FINDINGS),
        (answered("cause", faults=FAULT), None, False, ExitCode.DONE),
        (answered("cause", faults=FAULT), None, True, ExitCode.FAULT),
    ],
)
def test_the_exit_code_says_what_was_answered(
    diagnosis: Diagnosis, fail_on: str | None, *, strict: bool, expected: ExitCode
) -> None:
    assert exit_code(diagnosis, fail_on=fail_on, strict=strict) == expected


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def diagnose(*_: object, **__: object) -> Diagnosis:
        raise error

    monkeypatch.setattr("oomdoctor.pipeline.diagnose", diagnose)


def test_an_error_for_the_user_has_place_and_hint(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    fail_with(monkeypatch, InputError("bad", location=Location(path="a.log", line=3), hint="mend"))

    code = run(["diagnose", "--fact", "oom.seen=true"])

    assert code == ExitCode.USAGE
    assert capfd.readouterr() == ("", "error: a.log:3: bad\n  hint: mend\n")


def test_without_a_command_the_help_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    run([])

    told = "".join(capfd.readouterr())
    assert told.startswith("Usage: oomdoctor")
    assert "hint:" not in told


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("fp16-and-bf16", "COR2001 fp16-and-bf16:"),
        ("engine-weights-do-not-fit", "INF7019 engine-weights-do-not-fit:"),
        ("logits-vocab-fp32", "logits-vocab-fp32:"),
    ],
)
def test_a_rule_is_explained_by_its_name_unless_a_cause_has_it(
    capfd: pytest.CaptureFixture[str], name: str, first: str
) -> None:
    run(["explain", name])

    assert capfd.readouterr().out.startswith(first)


def test_a_rule_of_lint_is_listed_with_the_name_that_its_options_take(
    capfd: pytest.CaptureFixture[str],
) -> None:
    run(["rules", "list", "COR2001"])

    assert capfd.readouterr().out.endswith(" [lint: fp16-and-bf16]\n")


def test_a_failure_of_ours_is_told_shortly(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    fail_with(monkeypatch, ValueError("\x1b[2Jboom"))

    code = run(["diagnose", "--fact", "oom.seen=true"])

    told = capfd.readouterr().err
    assert code == ExitCode.FAULT
    assert told.startswith("internal error: ValueError: \\x1b[2Jboom\n")
    assert "Traceback" not in told


def test_verbose_adds_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    fail_with(monkeypatch, ValueError("boom"))

    run(["diagnose", "--fact", "oom.seen=true", "-v"])

    assert "Traceback (most recent call last)" in capfd.readouterr().err


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    fail_with(monkeypatch, KeyboardInterrupt())

    assert run(["diagnose", "--fact", "oom.seen=true"]) == ExitCode.INTERRUPTED


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_running_command_can_be_interrupted(root: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "oomdoctor", "diagnose", "-"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(root)},
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - the tests start no threads
    )
    time.sleep(2.0)

    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)

    assert (process.returncode, out) == (ExitCode.INTERRUPTED, b"")


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_reader_that_goes_away_is_no_failure(root: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/bash", "-c", PIPE, sys.executable],
        cwd=tmp_path,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(root)},
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", [["-", "-"], ["-", "--config", "-"]])
def test_standard_input_can_be_named_once(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diagnose", *arguments]) == ExitCode.USAGE
    assert "only once" in capsys.readouterr().err
