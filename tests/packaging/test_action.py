"""The shell commands of action.yml, run word for word in a scratch repository."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.packaging.scratch import BAD, GOOD, Runner, repository

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def temp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner's folder, with oomdoctor installed by the action's own step."""
    folder = tmp_path_factory.mktemp("runner")
    done = Runner(folder, folder).step("Install")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def checkout(tmp_path: Path, temp: Path) -> Path:
    """A repository with a good config, a bad one, and a file that is none."""
    (temp / "summary.md").unlink(missing_ok=True)
    files = {
        "conf/good.yaml": GOOD,
        "conf/deep/a b.yaml": BAD,
        ".github/workflows/x.yml": "on: push\n",
    }
    return repository(tmp_path, files)


def test_findings_are_annotated_reported_and_fail_at_the_end(checkout: Path, temp: Path) -> None:
    runner = Runner(checkout, temp, files="conf/**/*.yaml")

    lint, result = runner.step("Lint"), runner.step("Result")

    assert (lint.returncode, result.returncode) == (0, 1), lint.stderr
    assert "::error file=conf/deep/a b.yaml,line=3,endLine=3," in lint.stdout
    assert "title=COR2001 fp16-and-bf16::" in lint.stdout
    log = json.loads((checkout / "oomdoctor.sarif").read_text(encoding="utf-8"))
    assert {
        one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for one in log["runs"][0]["results"]
        if one["level"] == "error"
    } == {"conf/deep/a%20b.yaml"}
    assert "COR2001" in (temp / "summary.md").read_text(encoding="utf-8")


def test_nothing_found_passes(checkout: Path, temp: Path) -> None:
    runner = Runner(checkout, temp, files="conf/*.yaml", summary="false", gpu="RTX 4090")

    lint, result = runner.step("Lint"), runner.step("Result")

    assert (lint.returncode, result.returncode) == (0, 0), lint.stderr
    assert not (temp / "summary.md").exists()


def test_the_whole_checkout_is_linted_by_default(checkout: Path, temp: Path) -> None:
    runner = Runner(checkout, temp)

    assert "a b.yaml" in runner.step("Lint").stdout
    assert runner.step("Result").returncode == 1


def test_further_options_are_split_as_a_shell_does(checkout: Path, temp: Path) -> None:
    runner = Runner(checkout, temp, args="--ignore 'COR2001' --fact \"gpu.name=RTX 4090\"")

    assert "COR2001" not in runner.step("Lint").stdout
    assert runner.step("Result").returncode == 0


def test_an_input_is_never_run(checkout: Path, temp: Path) -> None:
    evil = "$(touch owned) `touch owned`; touch owned"
    runner = Runner(checkout, temp, files=evil, gpu=evil, args="'$(touch owned)'")

    runner.step("Lint")

    assert not (checkout / "owned").exists()


def test_a_pattern_without_files_is_an_error(checkout: Path, temp: Path) -> None:
    done = Runner(checkout, temp, files="nowhere/*.yaml").step("Lint")

    assert (done.returncode, done.stdout.count("::error ")) == (2, 1)


def test_wrong_use_is_not_taken_for_findings(checkout: Path, temp: Path) -> None:
    runner = Runner(checkout, temp, args="--no-such-option")

    runner.step("Lint")

    assert runner.step("Result").returncode == 2
