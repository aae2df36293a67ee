"""Planted wrong rules are found, each for its own reason and for no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oomdoctor.authoring.check import Report, check_rules
from oomdoctor.rules.bundle import read_causes
from oomdoctor.rules.nodes import compose, data_of
from oomdoctor.rules.source import read_rule_file, read_rule_text

ROOT = Path(__file__).resolve().parents[3]
BAD_RULES = ROOT / "fixtures" / "bad_rules"
GOOD = BAD_RULES / "good.yaml"
NAMES = sorted(path.stem for path in BAD_RULES.glob("*.yaml") if path != GOOD)
# wrong in its shape: what the published JSON Schema can see too
SHAPE_LEVEL = frozenset(
    {
        "certain-frequency",
        "leaf-too-long",
        "missing-field",
        "title-too-long",
        "too-deep",
        "unknown-dialect",
        "unknown-field",
        "unknown-operator",
        "wrong-family",
    }
)


def check(path: Path) -> Report:
    """Check one file of the corpus as if it stood where its code says."""
    source = read_rule_text(
        path.read_text(encoding="utf-8"), path="ALC3/ALC3900-cache-in-pieces.yaml"
    )
    neighbour = read_rule_file(ROOT / "rules/ALC3/ALC3001-fragmentation.yaml")
    return check_rules([source], others=[neighbour], causes=read_causes(ROOT / "rules"))


def expected_text(path: Path) -> str:
    """Return the words that the header of a bad rule expects."""
    line = path.read_text(encoding="utf-8").splitlines()[1]
    return line.removeprefix("# expect: ")


def test_the_rule_that_all_bad_ones_are_made_from_is_good() -> None:
    assert check(GOOD).problems == ()


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_rule_is_found_for_its_reason(name: str) -> None:
    path = BAD_RULES / f"{name}.yaml"

    messages = [problem.message for problem in check(path).problems]

    assert any(expected_text(path) in message for message in messages), messages


@pytest.mark.parametrize("name", NAMES)
def test_each_problem_has_a_line(name: str) -> None:
    problems = check(BAD_RULES / f"{name}.yaml").problems

    assert [problem for problem in problems if problem.location.line is None] == []


def test_a_type_error_points_at_its_column() -> None:
    problems = check(BAD_RULES / "unknown-fact.yaml").problems
    (line,) = (p.location for p in problems)

    text = (BAD_RULES / "unknown-fact.yaml").read_text(encoding="utf-8").splitlines()
    assert text[(line.line or 0) - 1][(line.column or 0) - 1 :].startswith("torch.reserved_unaloc")


def test_all_shape_errors_come_at_once() -> None:
    text = GOOD.read_text(encoding="utf-8").replace("severity: error", "severity: bad")
    text = text.replace("since: 0.1.0", "since: today").replace("why: ", "whi: ")

    problems = read_rule_text(text, path="x.yaml").problems

    assert sorted(
        word
        for word in ("severity", "since", "whi", "why")
        for problem in problems
        if {"severity": "'bad'", "since": "'today'", "whi": "field 'whi'", "why": "field 'why'"}[
            word
        ]
        in problem.message
    ) == ["severity", "since", "whi", "why"]


@pytest.fixture(scope="session")
def validator() -> object:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "rules/schema/rule.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def data(path: Path) -> object:
    """Return what a YAML reader of an editor sees."""
    node, _ = compose(path.read_text(encoding="utf-8"), path=str(path))
    assert node is not None
    return data_of(node)


@pytest.mark.parametrize("name", sorted(SHAPE_LEVEL))
def test_the_published_schema_rejects_what_is_wrong_in_shape(name: str, validator: object) -> None:
    assert not validator.is_valid(data(BAD_RULES / f"{name}.yaml"))  # type: ignore[attr-defined] - jsonschema is optional


def test_the_published_schema_accepts_all_rules(validator: object) -> None:
    paths = [GOOD, *sorted((ROOT / "rules").glob("*/*.yaml"))]
    sound = [path for path in paths if read_rule_file(path).rule is not None]

    faults = [
        f"{path.name}: {error.message}"
        for path in sound
        for error in validator.iter_errors(data(path))  # type: ignore[attr-defined] - jsonschema is optional
    ]

    assert faults == []
