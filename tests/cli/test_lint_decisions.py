"""What a project decides about findings, through the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.sitting import heed_interrupts
from tests.conftest import clean_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

GOOD = """\
model_name_or_path: some/model
output_dir: out
per_device_train_batch_size: 1
bf16: true
"""
BAD = f"{GOOD}fp16: true\n"
RULE = "fp16-and-bf16"


@pytest.fixture
def lint(run_python: RunPython, tmp_path: Path) -> Callable[..., Any]:
    """Run `oomdoctor lint` for one rule in a folder with a bad config; return code and output."""
    (tmp_path / "train.yaml").write_text(BAD, encoding="utf-8")

    def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
        words = ("-m", "oomdoctor", "lint", *(arguments or ("train.yaml",)))
        if "--select" not in arguments:
            words = (*words, "--select", RULE)
        done = run_python(*words, cwd=tmp_path, environment=environment)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


def test_quiet_is_a_line_per_finding_and_the_exit_code(lint: Callable[..., Any]) -> None:
    code, shown, told = lint("train.yaml", "-q")

    assert (code, told) == (1, "")
    assert shown.startswith("train.yaml:5:")
    assert shown.count("\n") == 1


@pytest.mark.parametrize(
    ("environment", "start"),
    [({}, "train.yaml:5:"), ({"GITHUB_ACTIONS": "true"}, "::error file=train.yaml,line=5,")],
    ids=["terminal", "workflow"],
)
def test_a_workflow_gets_annotations_without_asking(
    lint: Callable[..., Any], environment: dict[str, str], start: str
) -> None:
    assert lint(**environment)[1].startswith(start)


def test_a_format_that_is_asked_for_is_taken_in_a_workflow_too(lint: Callable[..., Any]) -> None:
    _, shown, _ = lint("train.yaml", "--format", "json", GITHUB_ACTIONS="true")

    assert json.loads(shown)["counts"] == {"error": 1, "info": 0, "warning": 0}


def test_a_comment_holds_a_finding_back(lint: Callable[..., Any], tmp_path: Path) -> None:
    text = BAD.replace("fp16: true", "fp16: true  # oomdoctor: ignore[COR2001] an old card", 2)
    (tmp_path / "train.yaml").write_text(text, encoding="utf-8")

    code, shown, _ = lint("train.yaml", "--format", "json")

    file = json.loads(shown)["files"][0]
    assert (code, file["findings"]) == (0, [])
    assert [(one["how"], one["reason"]) for one in file["suppressed"]] == [
        ("comment", "an old card")
    ]


@pytest.mark.parametrize(
    ("options", "notes"),
    [((), 0), (("--select", "KEY3001"), 1), (("--select", "KEY3", "--ignore", "KEY3001"), 0)],
    ids=["not selected", "selected", "ignored"],
)
def test_a_comment_about_a_rule_that_was_left_out_is_not_called_useless(
    lint: Callable[..., Any], tmp_path: Path, options: tuple[str, ...], notes: int
) -> None:
    text = f"{BAD}lr_scheduler_type: linear  # oomdoctor: ignore[KEY3001] not yet\n"
    (tmp_path / "train.yaml").write_text(text, encoding="utf-8")

    _, shown, _ = lint("train.yaml", "--format", "json", *options)

    assert len(json.loads(shown)["files"][0]["notes"]) == notes


def test_a_baseline_holds_back_what_was_there(lint: Callable[..., Any], tmp_path: Path) -> None:
    assert lint("train.yaml", "--write-baseline", "known.json")[0] == 0
    (tmp_path / "train.yaml").write_text(f"# moved\n\n{BAD}", encoding="utf-8")
    (tmp_path / "new.yaml").write_text(BAD, encoding="utf-8")

    code, shown, _ = lint("train.yaml", "new.yaml", "--baseline", "known.json", "-q")

    assert code == 1
    assert [line.split(":")[0] for line in shown.splitlines()] == ["new.yaml"]


def test_a_baseline_of_the_settings_is_written_first(
    lint: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / ".oomdoctor.toml").write_text("[lint]\nbaseline = 'b.json'\n", encoding="utf-8")

    assert lint()[0] == 2
    assert lint("train.yaml", "--write-baseline", "b.json")[0] == 0
    assert lint()[0] == 0


def test_a_config_is_not_overwritten_by_a_baseline(
    lint: Callable[..., Any], tmp_path: Path
) -> None:
    assert lint("train.yaml", "--write-baseline", "train.yaml")[0] == 2
    assert (tmp_path / "train.yaml").read_text(encoding="utf-8") == BAD


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("[lint]\nignore = ['COR2001']\n", 0),
        ("[lint]\nfail-on = 'never'\n", 0),
        ("[lint.per-file-ignores]\n'tr*.yaml' = ['fp16-and-bf16']\n", 0),
        ("[lint]\nignore = ['KEY3']\n", 1),
    ],
)
def test_settings_are_obeyed(
    lint: Callable[..., Any], tmp_path: Path, settings: str, code: int
) -> None:
    (tmp_path / ".oomdoctor.toml").write_text(settings, encoding="utf-8")

    assert lint()[0] == code


def test_the_command_line_outranks_the_settings(lint: Callable[..., Any], tmp_path: Path) -> None:
    text = "[lint]\nfail-on = 'never'\nselect = ['KEY3']\n"
    (tmp_path / ".oomdoctor.toml").write_text(text, encoding="utf-8")

    assert lint("train.yaml", "--fail-on", "error")[0] == 1


def wait_for(path: Path, text: str, *, times: int) -> bool:
    for _ in range(300):
        if path.read_text(encoding="utf-8").count(text) >= times:
            return True
        time.sleep(0.1)
    return False


def test_watch_lints_on_save_and_stops_at_ctrl_c(tmp_path: Path) -> None:
    config, shown = tmp_path / "train.yaml", tmp_path / "shown"
    config.write_text(BAD, encoding="utf-8")
    command = ("-m", "oomdoctor", "lint", "train.yaml", "--watch", "--select", RULE)
    with shown.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=tmp_path,
            stdout=out,
            env=clean_environment(),
            preexec_fn=heed_interrupts,  # noqa: PLW1509 - the tests start no threads
        )
        try:
            assert wait_for(shown, "1 error in 1 file", times=1)
            config.write_text(GOOD, encoding="utf-8")
            assert wait_for(shown, "nothing found in 1 file", times=1)
            config.write_text("model: [", encoding="utf-8")
            time.sleep(1)
            config.write_text(BAD, encoding="utf-8")
            assert wait_for(shown, "1 error in 1 file", times=2)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()
            process.wait()
