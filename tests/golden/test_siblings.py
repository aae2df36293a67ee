"""Pairs of logs that differ in the one thing that decides, and the answers that follow from it.

Each file of fixtures/siblings holds a case whose cause is certain and its siblings: the same input
with one figure, frame, key or line changed, after which the answer has to be another one.

    about       what decides here
    log         the text of the log
    config      the text of a config, optional
    first       causes of which one leads, with the answer `cause`
    siblings    name, change ([{from, to, all}] of the log or config), and what has to hold then:
                answer (one or several), first, not_first; the leading cause or the answer differs
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from oomdoctor.pipeline import diagnose
from oomdoctor.render.json import to_json

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
PATHS = sorted((FIXTURES / "siblings").glob("*.yaml"))
KEYS = {"about", "log", "config", "first", "siblings"}
SIBLING_KEYS = {"name", "change", "answer", "first", "not_first"}
Held = dict[str, Any]


@cache
def held_in(path: Path) -> Held:
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


@cache
def said_to(log: str, config: str | None) -> Held:
    answer: Held = json.loads(to_json(diagnose(log + "\n", config=config and config + "\n")))
    return answer


def leading(said: Held) -> str | None:
    return said["causes"][0]["cause"] if said["causes"] else None


def changed(text: str | None, changes: list[Held]) -> str | None:
    """Return the text with those changes that are about it."""
    for change in changes if text is not None else ():
        text = text.replace(change["from"], change["to"], -1 if change.get("all") else 1)
    return text


def sibling_of(held: Held, sibling: Held) -> tuple[str, str | None]:
    """Return log and config of a sibling; each of its changes has to change something."""
    log, config = held["log"], held.get("config")
    for change in sibling["change"]:
        assert change["from"] in log or change["from"] in (config or ""), change
    new_log, new_config = changed(log, sibling["change"]), changed(config, sibling["change"])
    assert new_log is not None
    assert (new_log, new_config) != (log, config)
    return new_log, new_config


def one_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


SIBLINGS = [
    pytest.param(path, number, id=f"{path.stem}-{sibling['name']}".replace(" ", "-"))
    for path in PATHS
    for number, sibling in enumerate(held_in(path)["siblings"])
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_case_has_its_cause(path: Path) -> None:
    held = held_in(path)
    said = said_to(held["log"], held.get("config"))

    assert set(held) <= KEYS
    assert (said["answer"], True) == ("cause", leading(said) in held["first"]), leading(said)


@pytest.mark.parametrize(("path", "number"), SIBLINGS)
def test_the_answer_follows_what_decides(path: Path, number: int) -> None:
    held = held_in(path)
    sibling = held["siblings"][number]
    before = said_to(held["log"], held.get("config"))
    after = said_to(*sibling_of(held, sibling))

    assert set(sibling) <= SIBLING_KEYS
    assert after["answer"] in one_of(sibling["answer"])
    assert leading(after) in sibling.get("first", [leading(after)])
    assert leading(after) not in sibling.get("not_first", [])
    assert (before["answer"], leading(before)) != (after["answer"], leading(after))


def test_there_are_sixty_causes_with_siblings() -> None:
    assert len([path for path in PATHS if held_in(path)["siblings"]]) >= 60
