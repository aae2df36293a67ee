"""Patches that take keys out or rename them, in every syntax; all other bytes stay."""

from __future__ import annotations

import pytest

from oomdoctor.configs import json_edit, yaml_edit
from oomdoctor.configs.patch import patch
from oomdoctor.configs.reader import read_config


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("a: 1\nb: 2 # x\nc: 3\n", "b", "a: 1\nc: 3\n"),
        ("a: 1\nb:\n  c: 1\n  d: 2\n\n# t\ne: 1", "b", "a: 1\n\n# t\ne: 1"),
        ("b:\n  c: 1 # x\n# t\ne: 1", "b.c", "b: {}\n# t\ne: 1"),
        ("b: &m\n  c: 1\ne: *m\n", "b.c", "b: &m {}\ne: *m\n"),
        ("b: {c: 1, d: 2}\r\n", "b.c", "b: {d: 2}\r\n"),
        ("b: {c: 1, d: 2}\n", "b.d", "b: {c: 1}\n"),
        ("b: {c: 1}\n", "b.c", "b: {}\n"),
        ("b: {\n  c: 1,\n  d: x\n}\nx: 1", "b.c", "b: {\n  d: x\n}\nx: 1"),
        ("x: &x 1\nb: {\n  c: *x,\n  d: 2\n}\n", "b.c", "x: &x 1\nb: {\n  d: 2\n}\n"),
        ("k: |\n  a\n\n  b\n\nl: 1\n", "k", "\nl: 1\n"),
        ("l: [1,\n 2]\nk:\n- a\n- b\n", "l", "k:\n- a\n- b\n"),
        ("k:\n- a\n- b\nl: 1", "k", "l: 1"),
        ("'k': 1\nl: 1  \n", "k", "l: 1  \n"),
        ("a: 1\n", "b", "a: 1\n"),
        ("a: 1\n", "b.c", "a: 1\n"),
    ],
)
def test_a_yaml_key_is_taken_out(before: str, key: str, after: str) -> None:
    assert yaml_edit.edit(before, {key: "!remove"}) == after


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("old: 'no'  # why\r\nb: 1\r\n", "old", "new: 'no'  # why\r\nb: 1\r\n"),
        ('b:\n  # t\n  "old": &x [1]\n', "b.old", 'b:\n  # t\n  "new": &x [1]\n'),
        ("b: {old: 1, z: 2}\n", "b.old", "b: {new: 1, z: 2}\n"),
        ("old: 1\nnew: 1\n", "old", "new: 1\n"),
        ("a: 1\n", "old", "a: 1\n"),
    ],
)
def test_a_yaml_key_is_renamed_in_its_place(before: str, key: str, after: str) -> None:
    assert yaml_edit.edit(before, {key: "!rename new"}) == after


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ('{"a": 1, "b": {"c": 1, "d": [1]}}', "b.c", '{"a": 1, "b": {"d": [1]}}'),
        ('{"a": 1, "b": {"c": 1, "d": [1]}}', "b", '{"a": 1}'),
        ('{\n\t"a": 1,\n\t"b": 2\n}\n', "a", '{\n\t"b": 2\n}\n'),
        ('{\r\n  "a": 1,\r\n  "b": 2\r\n}', "b", '{\r\n  "a": 1\r\n}'),
        ('{"a": {"x": 1}}', "a.x", '{"a": {}}'),
        ('{"a": 1}', "b", '{"a": 1}'),
    ],
)
def test_a_json_key_is_taken_out(before: str, key: str, after: str) -> None:
    assert json_edit.edit(before, {key: "!remove"}) == after


def test_a_json_key_is_renamed_in_its_place() -> None:
    assert json_edit.edit('{"a": {"x" : 1}}', {"a.x": "!rename y"}) == '{"a": {"y" : 1}}'


@pytest.mark.parametrize(
    ("head", "order"),
    [
        ("base: &b {old: 1}\n<<: *b", "!remove"),
        ("base: &b {old: 1}\n<<: *b", "!rename new"),
        ("old: 1\nnew: 2", "!rename new"),
        ("old: &x 1\nuses: *x", "!remove"),
    ],
)
def test_what_cannot_be_done_without_harm_stays_a_setting_to_make(head: str, order: str) -> None:
    text = f"{head}\noutput_dir: o\nper_device_train_batch_size: 1\n"
    (made,) = patch(read_config(text, name="t.yaml", path="t.yaml"), {"hf_trainer": {"old": order}})

    assert (made.settings, made.diff) == ({"old": order}, None)


def test_a_patch_takes_out_renames_and_sets_at_once() -> None:
    text = "output_dir: o\nold: 1\nper_device_train_batch_size: 1\ngone: 1\nbf16: false\n"
    wanted = {"old": "!rename new", "gone": "!remove", "bf16": True}
    (made,) = patch(read_config(text, name="t.yaml", path="t.yaml"), {"hf_trainer": wanted})

    assert made.diff is not None
    assert made.diff.split("\n")[3:] == [
        " output_dir: o",
        "-old: 1",
        "+new: 1",
        " per_device_train_batch_size: 1",
        "-gone: 1",
        "-bf16: false",
        "+bf16: true",
        "",
    ]
