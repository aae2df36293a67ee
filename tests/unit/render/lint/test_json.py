"""The JSON is a contract: its keys, its order, its names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from oomdoctor.render.lint.json import to_json, to_json_lines
from tests.unit.linting.made import finding, full, report

if TYPE_CHECKING:
    from collections.abc import Callable


def loaded(one: Any) -> Any:
    return json.loads(to_json(one, root="."))


def test_the_report_is_as_agreed(golden: Callable[[str, str], None]) -> None:
    golden("screens/full.json", to_json(full(), root="."))


def test_files_come_in_the_order_in_which_they_were_given() -> None:
    assert [(file["path"], file["dialect"]) for file in loaded(full())["files"]] == [
        ("conf/train.yaml", "axolotl"),
        ("conf/ds.json", "deepspeed"),
        ("conf/notes.txt", None),
        ("hf.yaml", "hf"),
    ]


def test_findings_come_in_the_order_of_their_lines() -> None:
    one = report(finding(line=None), finding(line=9), finding(line=2))

    assert [found["line"] for found in loaded(one)["files"][0]["findings"]] == [2, 9, None]


def test_counts_are_there_for_every_severity() -> None:
    assert loaded(full())["counts"] == {"error": 1, "warning": 1, "info": 1}


def test_json_lines_are_one_finding_each() -> None:
    rows = [json.loads(line) for line in to_json_lines(full(), root=".").splitlines()]

    assert [(row["code"], row["path"], row["dialect"]) for row in rows] == [
        ("COR2001", "conf/train.yaml", "axolotl"),
        ("KEY3001", "conf/train.yaml", "axolotl"),
        ("QLT5002", "conf/train.yaml", "axolotl"),
    ]


def test_json_lines_without_findings_are_empty() -> None:
    assert to_json_lines(report(), root=".") == ""
