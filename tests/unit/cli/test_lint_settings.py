"""The table about lint, in pyproject.toml or in a file of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.cli.lint_settings import LintSettings, lint_settings
from oomdoctor.cli.settings import rule_directories
from oomdoctor.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

BODY = """\
select = ["COR2", "MEM1"]
ignore = ["no-seed"]
fail-on = "warning"
gpu = "RTX 4090"
versions = { transformers = "4.46.3" }
baseline = "known.json"
per-file-ignores = { "examples/*" = ["QLT5"] }
"""


def said(folder: Path) -> LintSettings:
    return LintSettings(
        folder=str(folder),
        select=("COR2", "MEM1"),
        ignore=("no-seed",),
        fail_on="warning",
        gpu="RTX 4090",
        versions={"transformers": "4.46.3"},
        per_file_ignores={"examples/*": ("QLT5",)},
        baseline=str(folder / "known.json"),
    )


@pytest.mark.parametrize(
    ("name", "head"),
    [("pyproject.toml", "[tool.oomdoctor.lint]\n"), (".oomdoctor.toml", "[lint]\n")],
)
def test_everything_that_can_be_settled_is_read(tmp_path: Path, name: str, head: str) -> None:
    (tmp_path / name).write_text(head + BODY, encoding="utf-8")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)

    assert lint_settings(below) == said(tmp_path)


def test_without_settings_nothing_is_settled(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.other]\n", encoding="utf-8")

    assert lint_settings(tmp_path) == LintSettings()


def test_our_own_file_comes_before_a_pyproject_beside_it(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / ".oomdoctor.toml").write_text('rules = ["ours"]\n', encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.oomdoctor]\nrulez = 1\n", encoding="utf-8")

    assert rule_directories(tmp_path) == (str(tmp_path / "ours"),)
    assert lint_settings(tmp_path) == LintSettings(folder=str(tmp_path))


def test_a_table_about_lint_alone_is_found(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.oomdoctor.lint]\ngpu = "A100"\n', encoding="utf-8"
    )

    assert lint_settings(tmp_path).gpu == "A100"
    assert rule_directories(tmp_path) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lint = 1\n", "`lint` must be a table"),
        ("[lint]\nselekt = []\n", r"unknown setting 'selekt' in \[lint\]"),
        ('[lint]\nselect = "COR2"\n', "`select` must be a list of rules"),
        ('[lint]\nfail-on = "fatal"\n', "`fail-on` cannot be 'fatal'"),
        ("[lint]\ngpu = 1\n", "`gpu` must be a text"),
        ("[lint]\nversions = { transformers = 4 }\n", "`versions` must be a table"),
        ('[lint]\nper-file-ignores = ["a"]\n', "`per-file-ignores` must be a table"),
        ('[lint]\nper-file-ignores = { "a" = "b" }\n', "`a` must be a list of rules"),
        ("[lint\n", "not valid TOML"),
    ],
)
def test_a_faulty_table_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / ".oomdoctor.toml").write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match=message) as caught:
        lint_settings(tmp_path)

    assert str(caught.value).startswith(str(tmp_path / ".oomdoctor.toml"))


def test_a_misspelt_setting_is_told_with_the_one_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / ".oomdoctor.toml").write_text("[lint]\nselekt = []\n", encoding="utf-8")

    with pytest.raises(InputError) as caught:
        lint_settings(tmp_path)

    assert "did you mean 'select'?" in str(caught.value)
