"""Edits of YAML text: every way a value or a mapping can be written."""

from __future__ import annotations

import pytest

from oomdoctor.configs.yaml_edit import edit


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: 1\nb: {c: 1, d: 2}\n", "a: 1\nb: {c: 1, d: 2, e: 5}\n"),
        ("b: {}\n", "b: {e: 5}\n"),
        ("b:\n  c: 1  # one\n\n# last\n", "b:\n  c: 1  # one\n  e: 5\n\n# last\n"),
        ("b:\n    c: 1\nz: 0", "b:\n    c: 1\n    e: 5\nz: 0"),
        ("z: 0", "z: 0\nb:\n  e: 5\n"),
        ("{b: 1, z: 0}\n", "{b: {e: 5}, z: 0}\n"),
        ("b: 1  # why\nz: 0\n", "b: # why\n  e: 5\nz: 0\n"),
        ("b: null\r\nz: 0\r\n", "b:\r\n  e: 5\r\nz: 0\r\n"),
    ],
)
def test_a_key_is_put_where_its_mapping_ends(before: str, after: str) -> None:
    assert edit(before, {"b.e": 5}) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("k:\n", "k: 7\n"),
        ("k:   # why\n", "k: 7 # why\n"),
        ("k: &n 1\nl: *n\n", "k: &n 7\nl: *n\n"),
        ("l: &n 1\nk: *n\n", "l: &n 1\nk: 7\n"),
        ("k: |\n  text\n  more\nl: 1\n", "k: 7\nl: 1\n"),
        ("k:\n- a\n- b\n# c\nl: 1\n", "k: 7\n# c\nl: 1\n"),
        ("k:\n  - a\nl: 1\n", "k: 7\nl: 1\n"),
        ("k: 1\nk: 2\n", "k: 1\nk: 7\n"),
        ("base: &b {k: 1}\n<<: *b\nz: 0\n", "base: &b {k: 1}\n<<: *b\nz: 0\nk: 7\n"),
        ("'k': \"x\"\n", "'k': 7\n"),
    ],
)
def test_every_form_of_a_value_can_be_replaced(before: str, after: str) -> None:
    assert edit(before, {"k": 7}) == after


@pytest.mark.parametrize(
    ("value", "written"), [(1e-5, "1.0e-05"), (2.5e-5, "2.5e-05"), (0.1, "0.1"), (1e22, "1.0e+22")]
)
def test_a_small_number_is_written_so_that_it_stays_a_number(value: float, written: str) -> None:
    assert edit("k: 1\n", {"k": value}) == f"k: {written}\n"
