"""Each golden case against its whole expected.json, and apart from that against its claims.

The claims of case.yaml are written by hand and survive --update-golden, so that a golden file
written blindly cannot hide a regression:

    answer, resource        one value, or a list of which one has to be said
    first                   causes of which one has to lead
    listed                  causes that all have to be named
    not_first               causes that must not lead
    at_most_causes          how many may be named at all
    event                   values of the event
    measurement             words of the command of a next measurement
    measurement_between     causes among which that measurement decides
    some_measurement        there is a next measurement with a command
    fingerprint_first       the best reading of the request: bytes, part of its meaning, values
    fingerprint_any         readings that all have to be listed
    derived                 a line of the ledger that is derived, with at least so many bytes
    no_fix_touches          settings that no fix may change
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.rules import bundle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CLAIMS = {
    "answer",
    "resource",
    "first",
    "listed",
    "not_first",
    "at_most_causes",
    "event",
    "measurement",
    "measurement_between",
    "some_measurement",
    "fingerprint_first",
    "fingerprint_any",
    "derived",
    "no_fix_touches",
}
BESIDE_INPUTS = {"case.yaml", "expected.json"}

Said = dict[str, Any]


def _one_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _named(said: Said) -> list[str]:
    return [cause["cause"] for cause in said["causes"]]


def test_the_whole_answer_is_the_expected_one(case: Any, said_to: Any, may_write: bool) -> None:
    path: Path = case.folder / "expected.json"
    actual = said_to(case.name)
    if may_write:
        text = json.dumps(actual, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.exists(), "no expected.json; --update-golden writes it"

    expected = json.loads(path.read_text(encoding="utf-8"))

    assert expected == actual


def test_a_claim_about_the_answer_holds(case: Any, said_to: Any) -> None:
    said, claims = said_to(case.name), case.claims

    assert said["answer"] in _one_of(claims.get("answer", said["answer"]))
    assert said["resource"] in _one_of(claims.get("resource", said["resource"]))
    assert claims.get("event", {}).items() <= (said["event"] or {}).items()


def test_a_claim_about_the_causes_holds(case: Any, said_to: Any) -> None:
    said, claims = said_to(case.name), case.claims
    named = _named(said)
    leading = named[0] if named else None

    assert leading in claims.get("first", [leading])
    assert leading not in claims.get("not_first", [])
    assert set(claims.get("listed", [])) <= set(named)
    assert len(named) <= claims.get("at_most_causes", 8)


def test_a_claim_about_what_to_measure_holds(case: Any, said_to: Any) -> None:
    said, claims = said_to(case.name), case.claims
    measured = [one for one in said["next_measurements"] if one["command"]]
    words = claims.get("measurement", [])
    fitting = [one for one in measured if all(word in one["command"] for word in words)]

    assert fitting or not (words or claims.get("some_measurement"))
    between = set(claims.get("measurement_between", []))
    assert not between or any(between <= set(one["decides_between"]) for one in fitting)


def test_a_claim_about_the_fingerprint_holds(case: Any, said_to: Any) -> None:
    said, claims = said_to(case.name), case.claims
    readings = said["fingerprint"]
    best = claims.get("fingerprint_first")

    if best:
        assert readings
        assert best["bytes"] == readings[0]["bytes"]
        assert best["meaning"] in readings[0]["meaning"]
        assert best["values"].items() <= readings[0]["values"].items()
    for wanted in claims.get("fingerprint_any", []):
        assert any(_reads_as(one, wanted) for one in readings), readings


def _reads_as(reading: Said, wanted: Mapping[str, int]) -> bool:
    """Say whether a reading has so many bytes, of that width, in so many rows of the vocabulary."""
    values = reading["values"]
    rows = values.get("rows") or values.get("batch", 1) * values.get("seq", 1)
    width = reading["bytes"] // (rows * values["vocab"]) if values.get("vocab") else None
    return {"bytes": reading["bytes"], "element_bytes": width, "rows": rows} == wanted


def test_a_claim_about_what_is_derived_holds(case: Any, said_to: Any) -> None:
    claim = case.claims.get("derived")
    if not claim:
        return
    entries = [one for one in said_to(case.name)["ledger"] if claim["owner"] in one["owner"]]

    assert [one["origin"] for one in entries] == ["derived"]
    assert entries[0]["bytes"] >= claim["at_least_bytes"]


def test_a_claim_about_fixes_holds(case: Any, said_to: Any) -> None:
    patches = [
        patch for fix in said_to(case.name)["prescriptions"] for patch in (fix["patches"] or [])
    ]
    touched = {key for patch in patches for key in patch["settings"]}

    assert touched.isdisjoint(case.claims.get("no_fix_touches", []))


def test_probabilities_add_up_to_one(case: Any, said_to: Any) -> None:
    said = said_to(case.name)
    total = sum(one["probability"] for one in said["causes"]) + said["other_probability"]

    assert not said["causes"] or total == pytest.approx(1, abs=0.001)
    assert len(said["causes"]) <= 8


def test_a_case_is_complete_and_speaks_the_vocabulary(case: Any) -> None:
    files = {path.name for path in case.folder.iterdir()} - BESIDE_INPUTS
    causes = {*bundle.read_causes(bundle.rules_dir()), "undetermined"}
    named: Sequence[str] = [
        case.truth,
        *(
            name
            for key in ("first", "listed", "not_first", "measurement_between")
            for name in case.claims.get(key, [])
        ),
    ]

    assert files == {*case.logs, *case.configs}
    assert case.provenance["source"] == "own making"
    assert case.said_by == "constructed"
    assert case.about.strip()
    assert case.claims
    assert set(case.claims) <= CLAIMS
    assert set(named) <= causes


def test_there_are_thirty_cases_or_more(cases: Sequence[Any]) -> None:
    assert len(cases) >= 30


def test_golden_files_are_never_written_on_a_build_server(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(request.config.option, "update_golden", True)

    with pytest.raises(pytest.fail.Exception, match="refused"):
        request.getfixturevalue("may_write")
