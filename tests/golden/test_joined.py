"""Folders of many inputs: who failed first, what followed, and that their order changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from oomdoctor.pipeline import diagnose
from oomdoctor.render.json import as_dict

JOINED = Path(__file__).resolve().parents[2] / "fixtures" / "joined"
FOLDERS = sorted(path for path in JOINED.iterdir() if path.is_dir())


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def answer(paths: list[str]) -> dict[str, Any]:
    return dict(as_dict(diagnose(paths)))


def essence(said: dict[str, Any]) -> dict[str, Any]:
    """What has to stay the same: the answer, the event, the causes, the ranks, the facts."""
    kept = ("answer", "resource", "event", "causes", "ranks", "facts", "conflicts", "notes")
    return {key: said[key] for key in kept}


def seen(row: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in wanted}


def test_the_inputs_of_a_folder_are_one_case(folder: Path) -> None:
    expected = yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8"))["expect"]
    said = answer([str(folder / "inputs")])
    event = said["event"] or {"kind": None, "rank": None, "quote": {"artifact": ""}}

    for key in ("answer", "resource"):
        assert expected.get(key, said[key]) == said[key]
    assert expected["rank"] == event["rank"]
    assert expected.get("kind") == event["kind"]
    assert event["quote"]["artifact"].endswith(expected.get("artifact", ""))
    if "rows" in expected:
        rows = said["ranks"]
        assert expected["rows"] == [
            seen(row, wanted) for row, wanted in zip(rows, expected["rows"], strict=True)
        ]
    for key, value in expected.get("facts", {}).items():
        assert value == said["facts"][key]["value"]
    if "note" in expected:
        assert any(note.endswith(expected["note"]) for note in said["notes"])
    if "node" in expected:
        assert expected["node"] == said["ranks"][0]["node"]


def test_the_order_of_the_inputs_changes_nothing(folder: Path) -> None:
    paths = sorted(str(path) for path in (folder / "inputs").rglob("*") if path.is_file())
    shuffled = paths[1::2] + paths[::2]

    expected = essence(answer(paths))

    assert expected == essence(answer(shuffled))
    assert expected == essence(answer(paths[::-1]))


def test_no_figure_of_another_rank_is_mixed_in(folder: Path) -> None:
    said = answer([str(folder / "inputs")])
    if said["event"] is None or said["event"]["rank"] is None:
        pytest.skip("no rank failed")
    own = said["event"]["quote"]["artifact"]
    states = ("oom.", "torch.", "trace.")

    strange = {
        key: fact["quotes"][0]["artifact"]
        for key, fact in said["facts"].items()
        if key.startswith(states) and fact["quotes"] and fact["origin"] == "stated"
    }

    assert {own} == set(strange.values())
