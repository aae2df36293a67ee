"""A finding keeps its fingerprint as long as rule, file and setting stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.linting.fingerprint import fingerprint, numbered
from oomdoctor.linting.places import project_root, relative, stable
from oomdoctor.model.lint import FileReport
from tests.unit.linting.made import finding

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_it_is_the_same_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(tmp_path)
    (tmp_path / "conf").mkdir()
    monkeypatch.chdir(tmp_path)
    above = fingerprint(finding(path="conf/a.yaml"), path="", root=root)
    monkeypatch.chdir(tmp_path / "conf")

    assert fingerprint(finding(path="a.yaml"), path="", root=root) == above


def test_a_finding_without_a_file_belongs_to_the_one_it_is_reported_for() -> None:
    bare = finding(path=None)

    assert fingerprint(bare, path="a", root=".") != fingerprint(bare, path="b", root=".")


def test_equal_ones_are_numbered() -> None:
    file = FileReport(path="a.yaml", dialect=None)

    numbers = [n for _, _, n in numbered(file, [finding(), finding(key="x"), finding()], root=".")]

    assert numbers == [1, 1, 2]


def test_the_root_is_the_checkout(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert project_root(str(deep)) == str(deep)

    (tmp_path / ".git").mkdir()

    assert project_root(str(deep)) == str(tmp_path)


def test_a_path_outside_of_the_root_keeps_its_spelling(tmp_path: Path) -> None:
    root = str(tmp_path / "inside")

    assert relative(str(tmp_path / "x"), root) is None
    assert stable(str(tmp_path / "x"), root) == str(tmp_path / "x")
    assert relative(str(tmp_path / "inside" / "a" / "x"), root) == "a/x"
