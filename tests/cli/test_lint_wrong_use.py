"""What is asked of `oomdoctor lint` wrongly, and files that cannot be written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

GOOD = (
    "model_name_or_path: some/model\noutput_dir: out\nper_device_train_batch_size: 1\nbf16: true\n"
)
BAD = f"{GOOD}fp16: true\n"
ONE = ("--select", "fp16-and-bf16")


@pytest.fixture
def lint(run_python: RunPython, tmp_path: Path) -> Callable[..., Any]:
    """Run `oomdoctor lint` in a folder with a bad config; return code, output and errors."""
    (tmp_path / "train.yaml").write_text(BAD, encoding="utf-8")

    def run(*arguments: str, **more: Any) -> tuple[int, str, str]:
        done = run_python("-m", "oomdoctor", "lint", *arguments, cwd=tmp_path, **more)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--gpu", "RTX 4909"), "did you mean 'NVIDIA GeForce RTX 4090'?"),
        (("--gpu", ""), "no such card is known"),
        (("--select", "fp16-and-bf17"), "did you mean fp16-and-bf16?"),
        (("--ignore", "COR9"), "did you mean COR2?"),
        (("--select", ","), "--select names no rule"),
        (("--versions", "transfomers==4.5"), "did you mean transformers?"),
        (("--versions", "transformers==4.5junk"), "is not PACKAGE==VERSION"),
        (("--fix", "-"), "--fix needs files: standard input (-) is none"),
        (("--watch", "-"), "--watch needs files: standard input (-) is none"),
        (("--write-baseline", "gone/known.json"), "gone/known.json: cannot write"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_use_is_told_with_what_may_be_meant(
    lint: Callable[..., Any], arguments: tuple[str, ...], told: str
) -> None:
    code, shown, errors = lint("train.yaml", *arguments, stdin=b"")

    assert (code, shown) == (2, "")
    assert told in errors


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('ignore = ["nonsense"]', "ignore: no rule is called 'nonsense'"),
        (
            'per-file-ignores = { "*.yaml" = ["COR9"] }',
            "per-file-ignores: no rule is called 'COR9'",
        ),
        ('gpu = "RTX 4909"', "'RTX 4909': no such card"),
        ('versions = { transformers = "new" }', "'transformers==new' is not PACKAGE==VERSION"),
        ("select = 3", "`select` must be a list of rules"),
        ("ignore = [1]", "`ignore` must be a list of rules"),
        ('fail-on = "bad"', "`fail-on` cannot be 'bad'"),
        ("baseline = []", "`baseline` must be a text"),
        ("gpu = 1", "`gpu` must be a text"),
        ("versions = []", "`versions` must be a table"),
        ("per-file-ignores = []", "`per-file-ignores` must be a table"),
        ("selct = []", "unknown setting 'selct'"),
    ],
)
def test_wrong_settings_are_told(
    lint: Callable[..., Any], tmp_path: Path, table: str, told: str
) -> None:
    text = f"[tool.oomdoctor.lint]\n{table}\n"
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")

    code, shown, errors = lint("train.yaml")

    assert (code, shown) == (2, "")
    assert told in errors


def test_standard_input_is_shown_with_its_lines_and_gives_a_patch(
    lint: Callable[..., Any],
) -> None:
    _, shown, _ = lint("-", *ONE, "-f", "json", stdin=BAD.encode())
    _, patch, _ = lint("-", *ONE, "--diff", "--unsafe", stdin=BAD.encode())

    (file,) = json.loads(shown)["files"]
    assert (file["path"], file["findings"][0]["line"]) == ("<stdin>", 5)
    assert "-fp16: true\n+fp16: false\n" in patch


def test_a_patch_is_written_as_the_files_are_whatever_the_terminal_can_show(
    lint: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "train.yaml").write_text(f"run_name: café\n{BAD}# é\n", encoding="utf-8")

    _, patch, _ = lint(
        "train.yaml", *ONE, "--diff", "--unsafe", environment={"PYTHONIOENCODING": "ascii"}
    )

    assert " # é\n" in patch


def test_what_cannot_be_fixed_to_the_byte_is_told(lint: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_bytes(BAD.encode() + b"note: caf\xe9\n")

    code, patch, errors = lint("train.yaml", *ONE, "--diff", "--unsafe")

    assert (code, patch) == (1, "")
    assert "train.yaml: its fixes are left alone" in errors


def test_without_a_file_a_config_is_asked_for(lint: Callable[..., Any]) -> None:
    _, _, errors = lint()

    assert errors.startswith("error: no input: give a config or a script, a directory, or -")
