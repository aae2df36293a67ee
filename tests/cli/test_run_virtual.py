"""`oomdoctor run --virtual-gpu`: what is refused, and what a run on a virtual card is made of."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner

from oomdoctor.cli.run import command
from oomdoctor.cli.run_virtual import bytes_of, virtual_session
from oomdoctor.virtual import session as sessions
from oomdoctor.virtual.environment import environment_of

if TYPE_CHECKING:
    from pathlib import Path

SIZE = click.Option(["--size"])
NOTHING: dict[str, Any] = {
    "inject": True,
    "virtual_gpu": None,
    "virtual_venv": None,
    "others": None,
    "context": None,
    "fail_alloc_at": None,
    "steps": None,
    "evaluate": False,
    "save": False,
    "worst_case_seq": None,
    "longest_first": False,
    "unknown_rows": None,
    "seed": None,
}


@pytest.fixture
def _nothing_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sessions, "site_packages_of", lambda _: tmp_path)
    monkeypatch.setattr(sessions, "build", lambda site, **_: site)


def test_without_a_virtual_card_a_run_is_an_ordinary_one() -> None:
    asked: Any = NOTHING

    assert isinstance(virtual_session(asked, ("true",)), nullcontext)


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"steps": 3}, "--steps"),
        ({"others": 1}, "--others"),
        ({"evaluate": True}, "--eval"),
        ({"seed": 0}, "--seed"),
    ],
)
def test_options_of_virtual_cards_need_one(given: dict[str, Any], option: str) -> None:
    asked: Any = {**NOTHING, **given}

    with pytest.raises(click.UsageError, match=f"{option}: only with --virtual-gpu"):
        virtual_session(asked, ("true",))


def test_what_is_done_inside_the_program_needs_a_way_in() -> None:
    asked: Any = {**NOTHING, "virtual_gpu": "NVIDIA L4", "steps": 3, "inject": False}

    with pytest.raises(click.UsageError, match="--steps: not with --no-inject"):
        virtual_session(asked, ("true",))


@pytest.mark.usefixtures("_nothing_is_built")
def test_what_is_asked_for_reaches_the_command() -> None:
    asked: Any = {
        **NOTHING,
        "virtual_gpu": "NVIDIA L4 x2",
        "others": 1 << 30,
        "fail_alloc_at": 7,
        "unknown_rows": 0.5,
        "seed": 3,
    }

    with virtual_session(asked, (sys.executable,)) as session:
        assert session is not None
        environment = session.environment

    found = {
        name: environment[f"OOMDOCTOR_VIRTUAL_{name}"]
        for name in ("COUNT", "OTHERS_BYTES", "FAIL_AT", "ROWS", "SEED")
    }
    assert found == {
        "COUNT": "2",
        "OTHERS_BYTES": str(1 << 30),
        "FAIL_AT": "7",
        "ROWS": "0.5",
        "SEED": "3",
    }


@pytest.mark.usefixtures("_nothing_is_built")
def test_a_run_keeps_its_report_in_the_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import os; print(os.environ['OOMDOCTOR_VIRTUAL_NAME'])"
    plain = {"LD_PRELOAD": ""}
    monkeypatch.setattr(
        sessions, "environment_of", lambda *a, **k: {**environment_of(*a, **k), **plain}
    )
    words = ["--folder", str(tmp_path / "runs"), "--virtual-gpu", "NVIDIA L4", "--no-inject", "--"]

    done = CliRunner().invoke(command, [*words, sys.executable, "-c", program])

    (bundle,) = (tmp_path / "runs").iterdir()
    report = json.loads((bundle / "virtual.json").read_text())
    told = json.loads((bundle / "run.json").read_text())
    assert done.exit_code == 0
    assert "NVIDIA L4" in (bundle / "output.log").read_text()
    assert [card["name"] for card in report["cards"]] == ["NVIDIA L4"]
    assert told["virtual"] == "NVIDIA L4"


@pytest.mark.parametrize("text", ["much", "", "-3GiB"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"no size|less than nothing"):
        bytes_of(None, SIZE, text)


def test_a_size_is_read_with_its_unit() -> None:
    assert bytes_of(None, SIZE, "3GiB") == 3 << 30
