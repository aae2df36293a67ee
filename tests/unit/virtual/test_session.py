"""A command gets an environment with cards, and what came of it is reported."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.errors import InputError, UsageError
from oomdoctor.memory.outside import CONTEXT
from oomdoctor.record import replace
from oomdoctor.virtual import session as sessions
from oomdoctor.virtual.card import card_named, cards_named
from oomdoctor.virtual.outside import CONTEXT_BYTES, with_outside
from oomdoctor.virtual.python import python_of, with_venv
from oomdoctor.virtual.report import VirtualReport
from oomdoctor.virtual.session import Session, Wanted
from oomdoctor.virtual.unmodelled import Read, Unmodelled
from oomdoctor.virtual.usage import CardUsage

if TYPE_CHECKING:
    from collections.abc import Mapping

GIB = 1 << 30
L4 = card_named("NVIDIA L4")
NOTHING = CardUsage(peak_bytes=0, refused=0, held_bytes={})


@pytest.fixture(autouse=True)
def _nothing_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sessions, "site_packages_of", lambda _: tmp_path)
    monkeypatch.setattr(sessions, "build", lambda site, **_: site)


def begun(**wanted: Any) -> Session:
    return Session(Wanted(**{"cards": (L4,), **wanted}), [sys.executable], base={"PATH": "/bin"})


def test_a_command_gets_cards_with_contexts_and_strangers() -> None:
    with begun(cards=cards_named("NVIDIA L4 x2"), others_bytes=3 * GIB) as session:
        environment = session.environment

    assert environment["OOMDOCTOR_VIRTUAL_COUNT"] == "2"
    assert environment["OOMDOCTOR_VIRTUAL_CONTEXT_BYTES"] == str(CONTEXT_BYTES)
    assert environment["OOMDOCTOR_VIRTUAL_OTHERS_BYTES"] == str(3 * GIB)
    assert int(environment["OOMDOCTOR_VIRTUAL_COMMUNICATOR_BYTES"]) > 0
    assert session.words == "2 x NVIDIA L4"


def test_others_cannot_hold_more_than_a_card_has() -> None:
    with pytest.raises(UsageError, match=r"others cannot hold 30\.00 GiB of NVIDIA L4, which has"):
        begun(cards=cards_named("NVIDIA L4"), others_bytes=30 * GIB)


def test_only_what_differs_from_our_own_environment_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAME", "1")

    session = Session(Wanted(cards=(L4,)), [sys.executable], base=os.environ)

    with session:
        assert "SAME" not in session.environment


def test_what_is_to_be_done_inside_the_program_is_told() -> None:
    with begun(steps=3, evaluates=True, tokens=4096) as session:
        asked = json.loads(session.environment["OOMDOCTOR_TRIAL"])

    assert asked["steps"] == 3
    assert (asked["evaluates"], asked["saves"]) == (True, False)
    assert asked["hooks"] == {"stretch-rows": {"tokens": 4096}}


def test_nothing_is_asked_of_a_program_that_runs_as_it_is() -> None:
    with begun() as session:
        assert "OOMDOCTOR_TRIAL" not in session.environment


@pytest.mark.parametrize("phase", ["evaluates", "saves"])
def test_a_phase_after_the_last_step_needs_a_last_step(phase: str) -> None:
    with pytest.raises(UsageError, match="--steps"):
        begun(**{phase: True})


def test_only_the_command_gets_the_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    before = dict(os.environ)

    with begun(steps=3) as session:
        assert "libcuda.so.1" in session.environment["LD_PRELOAD"]
        assert dict(os.environ) == before

    assert dict(os.environ) == before


def test_a_run_leaves_nothing_behind() -> None:
    with begun() as session:
        scratch = Path(session.environment["OOMDOCTOR_VIRTUAL_SCRATCH"])
        session.usage.touch()
        assert scratch.is_dir()

    assert not scratch.exists()
    assert not session.usage.exists()


def test_the_report_reads_what_the_library_wrote() -> None:
    with begun() as session:
        log = Path(session.environment["OOMDOCTOR_VIRTUAL_LOG"])
        log.write_text("refused cudaOne\nread 7 2 train.py:3 in main\n")
        report = session.report()

    assert report.unmodelled.refused == ("cudaOne",)
    assert report.unmodelled.reads == (Read("train.py:3 in main", 2),)


def said(use: CardUsage, **more: Any) -> str:
    card = with_outside(L4)
    report = VirtualReport(
        cards=(replace(card, **more),), usage=(use,), unmodelled=Unmodelled(assumed=("one", "two"))
    )
    return "\n".join(report.sentences())


def test_a_report_says_how_much_was_used_and_what_was_assumed() -> None:
    text = said(CardUsage(peak_bytes=10 * GIB, refused=2, held_bytes={}), others_bytes=3 * GIB)

    assert "NVIDIA L4: at most 10.00 GiB of 22.03 GiB in use, 3.00 GiB of it by others" in text
    assert "refused 2 allocations" in text
    assert "460.80 MiB of CUDA context" in text
    assert "one" in text


@pytest.mark.parametrize(
    ("torch", "warning"),
    [((2, 8), "with torch 2.8 no values are followed"), ((2, 99), "nobody has tried torch 2.99")],
)
def test_a_version_of_torch_that_is_played_less_well_is_said(
    torch: tuple[int, int], warning: str
) -> None:
    report = VirtualReport(cards=(L4,), usage=(NOTHING,), unmodelled=Unmodelled(), torch=torch)
    known = replace(report, torch=(2, 13))

    assert warning in "\n".join(report.sentences())
    assert "torch 2" not in "\n".join(known.sentences())


def test_a_card_that_nobody_used_is_named_as_such() -> None:
    assert "not used" in said(NOTHING)


@pytest.mark.parametrize(("spare", "doubted"), [(CONTEXT[0], True), (CONTEXT[1], False)])
def test_a_result_that_hangs_on_the_context_is_doubted(spare: int, *, doubted: bool) -> None:
    use = CardUsage(peak_bytes=L4.total_bytes - spare, refused=0, held_bytes={})

    assert ("to spare" in said(use)) is doubted


def test_a_report_for_machines_has_the_same_figures() -> None:
    use = CardUsage(peak_bytes=GIB, refused=0, held_bytes={})
    reads = (Read("a.py:1", 4),)
    report = VirtualReport(cards=(L4,), usage=(use,), unmodelled=Unmodelled(reads=reads))

    data = report.as_data()

    assert data["reads"] == [{"where": "a.py:1", "times": 4}]
    assert json.loads(json.dumps(data)) == data


@pytest.mark.parametrize(
    ("name", "linked"), [("NVIDIA A100-SXM4-80GB", True), ("NVIDIA GeForce RTX 4090", False)]
)
def test_buffers_of_communicators_depend_on_how_cards_are_linked(
    name: str, *, linked: bool
) -> None:
    card = with_outside(card_named(name))

    assert (card.communicator_bytes > card.pair_bytes) is linked


def program(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["python", "train.py"], "bin/python"),
        (["env", "A=1", "nice", "-n", "5", "python3.11", "train.py"], "bin/python3.11"),
        (["torchrun", "train.py"], "other/python"),
        (["bash", "run.sh"], "bin/python"),
        (["no-such-program"], "bin/python"),
    ],
)
def test_the_python_of_a_command_is_found(tmp_path: Path, words: list[str], found: str) -> None:
    for name in ("bin/python", "bin/python3.11", "other/python", "bin/bash", "bin/env", "bin/nice"):
        program(tmp_path / name)
    program(tmp_path / "bin/torchrun", f"#!{tmp_path}/other/python -s\nimport torch\n")
    environment = {"PATH": str(tmp_path / "bin")}

    assert python_of(words, environment) == str(tmp_path / found)


def test_without_a_python_the_error_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no python") as caught:
        python_of(["bash"], {"PATH": str(tmp_path)})

    assert "torch===" in str(caught.value.hint)


def test_a_venv_stands_before_all_others(tmp_path: Path) -> None:
    program(tmp_path / "venv/bin/python")
    base: Mapping[str, str] = {"PATH": "/bin", "PYTHONHOME": "/theirs"}

    found = with_venv(tmp_path / "venv", base)

    assert found == {"PATH": f"{tmp_path}/venv/bin:/bin", "VIRTUAL_ENV": f"{tmp_path}/venv"}


def test_a_folder_that_is_no_venv_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no virtual environment"):
        with_venv(tmp_path, {})
