"""The JSON contract."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.model.core import Finding, Verdict
from oomdoctor.model.enums import Maturity, Severity, Truth
from oomdoctor.render.json import as_dict, to_json
from oomdoctor.render.words import shares

if TYPE_CHECKING:
    from oomdoctor.model.plan import Diagnosis


def with_probability(value: float) -> Finding:
    return Finding(
        code="ACT2001",
        cause="x",
        title="x",
        severity=Severity.ERROR,
        maturity=Maturity.STABLE,
        probability=value,
        gate=Verdict(truth=Truth.TRUE),
    )


def test_keys_are_sorted_and_the_schema_has_a_version(full: Diagnosis) -> None:
    text = to_json(full)

    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"
    assert json.loads(text)["schema_version"] == 1


def test_the_text_is_ascii_whatever_the_input_holds(full: Diagnosis) -> None:
    assert to_json(replace(full, headline="naïve \ud800 \u202e")).isascii()


def test_every_key_is_there_even_if_nothing_is_known(full: Diagnosis, nothing: Diagnosis) -> None:
    assert as_dict(nothing).keys() == as_dict(full).keys()


def test_sizes_are_whole_numbers(full: Diagnosis) -> None:
    data = json.loads(to_json(full))

    sizes = [
        data["event"]["requested_bytes"],
        data["event"]["requested_slack_bytes"],
        data["capacity_bytes"],
        data["causes"][0]["explains_bytes"],
        *(entry["bytes"] for entry in data["ledger"]),
        *data["prescriptions"][0]["saves_bytes"].values(),
    ]
    assert {type(size) for size in sizes} == {int}


def test_evidence_names_artifact_line_and_text(full: Diagnosis) -> None:
    data = json.loads(to_json(full))

    assert data["causes"][0]["evidence"][1] == {
        "artifact": "train.yaml",
        "line": 8,
        "text": "per_device_train_batch_size: 2",
    }


def test_the_patch_is_the_one_with_a_diff(full: Diagnosis) -> None:
    data = json.loads(to_json(full))

    assert data["prescriptions"][0]["patch"]["file"] == "train.yaml"
    assert data["prescriptions"][1]["patch"]["diff"] is None


def test_at_most_eight_causes_are_listed(full: Diagnosis) -> None:
    many = replace(full, causes=tuple(with_probability(0.1) for _ in range(9)))

    data = json.loads(to_json(many))

    assert len(data["causes"]) == 8
    assert data["other_probability"] == pytest.approx(0.2)


@given(st.lists(st.floats(min_value=0, max_value=1), max_size=8))
def test_probabilities_add_up_to_one(weights: list[float]) -> None:
    total = sum(weights) + 0.1

    rounded, other = shares([with_probability(weight / total) for weight in weights])

    assert sum(rounded) + other == pytest.approx(1, abs=1e-9)
    assert all(0 <= value <= 1 for value in (*rounded, other))
