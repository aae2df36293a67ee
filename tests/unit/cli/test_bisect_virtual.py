"""What `bisect` and `confirm` on virtual cards are made of: cards, interpreter, room."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from oomdoctor.cli import bisect_virtual
from oomdoctor.cli.bisect_backend import card_of, on_virtual_cards, search_path
from oomdoctor.cli.bisect_command import CommandTemplate
from oomdoctor.cli.bisect_search import limit_of
from oomdoctor.cli.bisect_setup import Setup
from oomdoctor.cli.bisect_virtual import machine_of, virtual_maker
from oomdoctor.lab.backends import COMMAND, BackendSpec
from oomdoctor.lab.guard import Allowed
from oomdoctor.memory.outside import CONTEXT
from oomdoctor.model.job import CardSpec
from oomdoctor.search.axes import Axis
from oomdoctor.virtual.outside import CONTEXT_BYTES
from oomdoctor.virtual.session import Played
from oomdoctor.virtual.trials import VirtualTrials

GIB = 1 << 30
CARD = CardSpec(name="NVIDIA L4", capability=(8, 9), processors=58, total_bytes=22 * GIB)
PLAYED = Played(Path("libraries"), (2, 13))


def setup(*words: str, **more: Any) -> Setup:
    template = CommandTemplate(words, (), ".") if words else None
    known = {
        "backend": "virtual",
        "inner": Axis(name="batch", low=1, high=8),
        "outer": None,
        "job": None,
        "template": template,
        "card": CARD,
        "cap_bytes": None,
        "steps": 2,
        "evaluates": False,
        "saves": False,
    }
    return Setup(**{**known, **more})


def asked(**more: Any) -> Any:
    return {"backend": "virtual", "python": None, "executor": None, **more}


@pytest.fixture
def _nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bisect_virtual, "played_for", lambda _: PLAYED)


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return path


def test_a_count_of_cards_is_not_part_of_their_name() -> None:
    values = {"backend": "virtual", "gpu": ("L4 x2",)}

    found, count = on_virtual_cards(values, has_command=True)

    assert (found["gpu"], count) == (("L4",), 2)


def test_other_back_ends_take_names_as_they_are() -> None:
    values = {"backend": "cuda", "gpu": ("L4 x2",)}

    assert on_virtual_cards(values, has_command=True) == (values, 1)


@pytest.mark.usefixtures("_nothing_is_built")
def test_a_command_is_played_for_the_python_that_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = program(tmp_path / "own/python")
    monkeypatch.setenv("PATH", str(own.parent))

    machine = machine_of(setup("python", "train.py", cards=2), asked())

    assert (machine.python, machine.times, machine.card) == (str(own), 2, CARD)


@pytest.mark.usefixtures("_nothing_is_built")
def test_a_python_that_is_named_comes_before_that_of_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path / "own/python").parent))
    named = program(tmp_path / "other/python")

    machine = machine_of(setup("python", "train.py"), asked(python=str(named)))

    assert machine.python == str(named)
    assert search_path("virtual", str(named)) == f"{named.parent}{os.pathsep}{tmp_path / 'own'}"
    assert search_path("cuda", str(named)) is None


@pytest.mark.usefixtures("_nothing_is_built")
def test_each_place_has_virtual_trials(tmp_path: Path) -> None:
    spec = BackendSpec(name="virtual", runs=COMMAND, folder=str(tmp_path))
    make = virtual_maker(setup("python3", "train.py"), asked(python="/usr/bin/python3"), spec)

    assert isinstance(make(lambda: None, {}), VirtualTrials)


def test_the_context_of_a_process_is_not_the_allocators() -> None:
    assert limit_of(setup("true"), Allowed()) == CARD.total_bytes - CONTEXT_BYTES


def test_a_cap_alone_is_enough_of_a_card() -> None:
    card = card_of("virtual", (), 8 * GIB)

    assert card is not None
    assert card.total_bytes >= 8 * GIB + CONTEXT[1]


@pytest.mark.parametrize(("count", "words"), [(1, "NVIDIA L4"), (2, "2 x NVIDIA L4")])
def test_several_cards_are_named_with_their_count(count: int, words: str) -> None:
    assert setup("true", cards=count).card_words(Allowed()) == words


def test_cards_that_are_there_are_named_as_the_guard_saw_them() -> None:
    assert setup("true").card_words(Allowed(names=("A100", "L4"))) == "A100, L4"
