"""What cannot be read is told once and rightly: broken, too large, a template, data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from oomdoctor.linting.run import Wanted, lint

if TYPE_CHECKING:
    from pathlib import Path

    from oomdoctor.model.lint import FileReport

TORCHTITAN = """\
[training]
local_batch_size = 8
seq_len = 2048
[parallelism]
data_parallel_shard_degree = -1
[model]
name = "llama3"
"""
WHOLE = Wanted(search=False)


def linted(tmp_path: Path, name: str, text: str, wanted: Wanted = WHOLE) -> FileReport:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    (file,) = lint([str(path)], wanted).files
    return file


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.yaml", "{% if big %}\nlr: 1\n{% endif %}\n", "a template"),
        ("b.yaml", "lr: {{ lr }}:\n", "a template"),
        ("c.json", '{"text": "a"}\n{"text": "b"}\n', "JSON lines"),
        ("d.yaml", "a: 1\n" + "".join(f"k{i}: 1\n" for i in range(20_001)), "too large"),
        ("e.json", "[" + "1," * 200_001 + "1]", "too large"),
        ("g.json", json.dumps({f"k{i}": i for i in range(20_001)}), "too large"),
        ("f.yaml", "a: " + "[" * 200 + "]" * 200, "too large"),
        ("crash.log", "  trainer.train()\nRuntimeError: no\n", "a log"),
    ],
)
def test_what_may_be_in_order_is_a_note_and_no_error(
    tmp_path: Path, name: str, text: str, why: str
) -> None:
    file = linted(tmp_path, name, text)

    assert file.findings == ()
    assert [f": not looked at: {why}" in n or why in n for n in file.notes] == [True]


def test_a_config_that_is_broken_toml_is_an_error_and_is_looked_at_all_the_same(
    tmp_path: Path,
) -> None:
    file = linted(tmp_path, "train.toml", f"{TORCHTITAN}flavor = \n")

    (one,) = [one for one in file.findings if one.rule == "unreadable-file"]
    assert (file.dialect, one.line, one.severity.value) == ("torchtitan", 8, "error")


def test_toml_that_is_in_order_has_no_such_error(tmp_path: Path) -> None:
    file = linted(tmp_path, "train.toml", TORCHTITAN)

    assert [one for one in file.findings if one.rule == "unreadable-file"] == []


def test_a_broken_file_is_told_where_the_rule_about_it_is_not_selected(tmp_path: Path) -> None:
    file = linted(tmp_path, "a.yaml", "a: [1\nb: 2\n", Wanted(search=False, select=("COR2",)))

    assert file.findings == ()
    assert ["a.yaml:2:2: not read: " in note for note in file.notes] == [True]


def test_a_notebook_with_large_pictures_is_read(tmp_path: Path) -> None:
    code = [
        "from transformers import TrainingArguments\n",
        "TrainingArguments('o', fp16=True, bf16=True)",
    ]
    picture = {"data": {"image/png": "A" * 5_000_000}}
    cell = {"cell_type": "code", "source": code, "outputs": [picture]}
    book = json.dumps({"cells": [cell, cell], "metadata": {}, "nbformat": 4}, indent=1)

    file = linted(tmp_path, "train.ipynb", book, Wanted(search=False, select=("COR2001",)))

    assert (file.dialect, [one.rule for one in file.findings]) == ("python", ["fp16-and-bf16"])
