"""A command as one trial runs it: copies of configs edited."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import InputError
from oomdoctor.lab.edits import keys_added, with_copies
from oomdoctor.model.trial import CommandSpec, FileEdit

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("argument", ["train.yaml", "--config=train.yaml", "./train.yaml"])
def test_a_copy_is_edited_with_its_comments_and_stands_in_for_the_original(
    tmp_path: Path, argument: str
) -> None:
    original = tmp_path / "train.yaml"
    original.write_text("# mine\nmicro_batch_size: 1  # rows\nlr: 0.1\n", encoding="utf-8")
    edit = FileEdit(path="train.yaml", key="micro_batch_size", value=8)
    command = CommandSpec(arguments=("x", argument), folder=str(tmp_path), edits=(edit,))

    made = with_copies(command, tmp_path / "trial")

    copy = tmp_path / "trial" / "0" / "train.yaml"
    flag, equals, _ = argument.rpartition("=")
    assert made.arguments == ("x", f"{flag}{equals}{copy}")
    assert copy.read_text(encoding="utf-8") == ("# mine\nmicro_batch_size: 8  # rows\nlr: 0.1\n")
    assert "micro_batch_size: 1" in original.read_text(encoding="utf-8")


def test_two_keys_of_one_file_go_into_one_copy(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"a": 1, "b": {"c": 2}}', encoding="utf-8")
    edits = (
        FileEdit(path="ds.json", key="a", value=5),
        FileEdit(path=str(tmp_path / "ds.json"), key="b.c", value=6),
    )
    command = CommandSpec(arguments=("ds.json",), folder=str(tmp_path), edits=edits)

    made = with_copies(command, tmp_path / "trial")

    written = (tmp_path / "trial" / "0" / "ds.json").read_text(encoding="utf-8")
    assert made.arguments == (str(tmp_path / "trial" / "0" / "ds.json"),)
    assert written == '{"a": 5, "b": {"c": 6}}'


def test_an_edited_script_finds_the_modules_beside_the_original(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("batch_size = 4\nimport mine\n", encoding="utf-8")
    edit = FileEdit(path="train.py", key="batch_size", value=8)
    command = CommandSpec(
        arguments=("python", "train.py"),
        folder=str(tmp_path),
        edits=(edit,),
        environment={"PYTHONPATH": "/a"},
    )

    made = with_copies(command, tmp_path / "trial")

    copy = tmp_path / "trial" / "0" / "train.py"
    assert copy.read_text(encoding="utf-8").startswith("batch_size = 8\n")
    assert made.environment == {"PYTHONPATH": f"{tmp_path}:/a"}


@pytest.mark.parametrize(
    ("name", "text", "arguments", "says"),
    [
        ("a.yaml", "a: 1\n", ("x",), "does not name this file"),
        ("a.yaml", None, ("a.yaml",), "cannot be read"),
        ("a.yaml", "- 1\n", ("a.yaml",), "cannot be edited"),
        ("a.cfg", "a = 1\n", ("a.cfg",), "cannot be edited"),
    ],
)
def test_a_file_that_cannot_be_edited_is_an_error_that_names_it(
    tmp_path: Path, name: str, text: str | None, arguments: tuple[str, ...], says: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    edit = FileEdit(path=name, key="a", value=5)
    command = CommandSpec(arguments=arguments, folder=str(tmp_path), edits=(edit,))

    with pytest.raises(InputError, match=says) as caught:
        with_copies(command, tmp_path / "trial")

    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "train:\n  batch: 4\n"),
        ("a.json", '{"train": {"batch": 4}}'),
        ("a.toml", "[train]\nbatch = 4\n"),
    ],
)
def test_a_key_that_a_config_does_not_have_is_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    keys = ("train.batch", "train.bath")
    edits = tuple(FileEdit(path=name, key=key, value=8) for key in keys)

    found = keys_added(CommandSpec(arguments=(name,), folder=str(tmp_path), edits=edits))

    assert found == (f"train.bath of {name}",)
