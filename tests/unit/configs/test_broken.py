"""Configs that are broken, ambiguous or hostile: named places, notes, quick refusals."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config
from oomdoctor.errors import InputError
from tests.hang import no_hang


def said(text: str, name: str) -> dict[str, object]:
    """Return all facts of a text but its lines."""
    facts = [fact for reading in read_config(text, name=name) for fact in reading.facts]
    return {fact.key: fact.value for fact in facts if fact.key not in ("job.text", "job.settings")}


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        ("a:\n\t- b\n", "a.yaml", "a.yaml:2:1"),
        ("a: [1,\nb: 2\n", "a.yml", "a.yml:3:1"),
        ('{"a": 1,,}', "a.json", "a.json:1:9"),
        ('{"a": 1\n "b": 2}', "a.json", "a.json:2:2"),
        ('{"a": nope}', "a.json", "a.json:1:7"),
    ],
)
def test_broken_files_name_the_place(text: str, name: str, place: str) -> None:
    with pytest.raises(InputError) as caught:
        read_config(text, name=name)

    assert str(caught.value.location) == place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{\n "gradient_accumulation_steps": 4, // why\n "x": 1}', "line 2, column 36"),
        ('{"gradient_accumulation_steps": 4,}', "line 1, column 34"),
        ('{"x": NaN, "gradient_accumulation_steps": 4}', "line 1, column 7"),
        ('\n\n  # why\n{"gradient_accumulation_steps": 4, "x": -Infinity}', "line 3, column 3"),
    ],
)
def test_json_that_only_lenient_programs_read_is_read_with_a_note(text: str, place: str) -> None:
    (reading,) = read_config(text, name="a.json")
    facts = {fact.key: fact for fact in reading.facts}

    assert facts["train.grad_accum"].value == 4
    assert facts["train.grad_accum"].quotes[0].text == "4"
    assert reading.notes[0].startswith(f"{place}: no strict JSON")


def test_a_character_that_yaml_forbids_is_noted_and_the_rest_is_read() -> None:
    (reading,) = read_config('name: "\x1b[1mx"\nbatch_size: 4\n', name="a.yaml")

    assert {f.key: f.value for f in reading.facts if f.key not in ("job.text", "job.settings")} == {
        "train.micro_batch": 4
    }
    assert reading.notes[0].startswith("line 1, column 8: the character U+001B may not stand")


def test_broken_yaml_under_another_name_is_read_as_notes() -> None:
    (reading,) = read_config("note: a, batch_size: 4, packed: false\n", name="config.txt")

    assert {f.key: f.value for f in reading.facts if f.key not in ("job.text", "job.settings")} == {
        "train.micro_batch": 4,
        "train.packing": False,
    }
    assert reading.notes[0].startswith("line 1: read as notes, not as yaml")


def test_a_key_given_twice_is_noted_with_both_lines_and_the_last_one_counts() -> None:
    (reading,) = read_config("batch_size: 4\nseed: 1\nbatch_size: 8\n", name="a.yaml")

    assert reading.notes == (
        "'batch_size' is given twice, in line 1 and line 3: the last one is in force",
    )
    assert said("batch_size: 4\nseed: 1\nbatch_size: 8\n", "a.yaml") == {"train.micro_batch": 8}


def test_aliases_and_merge_keys_are_followed() -> None:
    text = "base: &base {batch_size: 4, bf16: true}\nrun:\n  <<: *base\n  batch_size: 2\n"

    assert said(text, "a.yaml") == {"train.micro_batch": 4, "train.amp": "bf16"}


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"k{i}: &k{i} [{', '.join(['*' + (f'k{i - 1}' if i else 'a')] * 9)}]\n"
            for i in range(20)
        ),
        "a: &a\n  b: *a\n",
        "[" * 20_000,
        "\n".join(" " * i + "k:" for i in range(300)),
        '{"a":' * 5000,
    ],
    ids=["laughs", "cycle", "deep list", "deep map", "deep json"],
)
def test_documents_that_explode_are_refused(text: str) -> None:
    with no_hang(), pytest.raises(InputError):
        read_config(text, name="a.json" if text.startswith("{") else "a.yaml")
