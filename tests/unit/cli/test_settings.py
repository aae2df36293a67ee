"""The table of pyproject.toml."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.cli.settings import rule_directories
from oomdoctor.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def settings(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")


def test_directories_are_relative_to_the_nearest_file(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    settings(tmp_path, '[tool.oomdoctor]\nrules = ["ours"]\n')

    assert rule_directories(deep) == (str(tmp_path / "ours"),)


def test_a_file_without_our_table_says_nothing(tmp_path: Path) -> None:
    settings(tmp_path, "[tool.other]\nrules = 1\n")

    assert rule_directories(tmp_path) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.oomdoctor]\nrules = ", "not valid TOML"),
        ('[tool.oomdoctor]\nrules = "x"\n', "must be a list"),
        ("[tool.oomdoctor]\nrulez = []\n", "unknown setting 'rulez'"),
        ('[tool.oomdoctor]\nrules = ["gone"]\n', "'gone' does not exist"),
    ],
)
def test_a_faulty_table_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    settings(tmp_path, text)

    with pytest.raises(InputError, match=message) as caught:
        rule_directories(tmp_path)

    assert str(caught.value).startswith(str(tmp_path / "pyproject.toml"))
