"""The file that keeps an interview."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from oomdoctor.cli import ask_session
from oomdoctor.cli.ask_session import Session
from oomdoctor.errors import InputError
from oomdoctor.reason.interview import Answer

if TYPE_CHECKING:
    from pathlib import Path

SESSION = Session(
    files=("/data/crash.log",),
    facts=("gpu.name=A100",),
    answers=(
        Answer(question="when", facts=("run.phase=eval",), text="in validation"),
        Answer(question="card"),
        Answer(question="", drops=("run.phase",)),
        Answer(question="message", text="line\nline", pasted=True),
    ),
)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "one.json")

    ask_session.write(SESSION, path)

    assert ask_session.read(path) == SESSION


def test_it_is_for_its_owner_alone_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "one.json"

    ask_session.write(SESSION, str(path))

    assert [one.name for one in tmp_path.iterdir()] == ["one.json"]
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"answers": 3, "schema": 1}', "step 1\n"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "one.json"
    path.write_text(text)

    with pytest.raises(InputError):
        ask_session.read(str(path))


ANSWER = {"question": "when", "facts": ["run.phase=eval"], "text": ""}


@pytest.mark.parametrize(
    "changed",
    [
        {"files": "/etc"},
        {"files": ["/etc\0"]},
        {"files": ["/\ud800"]},
        {"files": ["crash.log"]},
        {"config": 7},
        {"answers": [{**ANSWER, "facts": "run.phase=eval"}]},
        {"answers": [{**ANSWER, "text": 7}]},
        {"answers": {"question": "when"}},
    ],
    ids=str,
)
def test_what_no_interview_wrote_is_a_damaged_interview(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"schema": 1, "files": [], "answers": [], **changed}))

    with pytest.raises(InputError, match="damaged"):
        ask_session.read(str(path))


def test_text_nested_without_end_is_no_interview(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text("[" * 200_000)

    with pytest.raises(InputError, match="no interview"):
        ask_session.read(str(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_may_never_end_is_no_interview(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    for path in (str(pipe), "/dev/zero"):
        with pytest.raises(InputError, match="no interview"):
            ask_session.read(path)


def test_a_name_that_is_no_text_and_half_a_character_are_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "one.json")
    session = Session(files=("/data/\udcff.log",), answers=(Answer(question="", text="é"),))

    ask_session.write(session, path)

    assert ask_session.read(path) == session


def test_a_newer_schema_is_refused_with_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"schema": 99, "answers": []}))

    with pytest.raises(InputError, match="schema 99"):
        ask_session.read(str(path))


def test_a_new_interview_is_kept_in_the_state_folder(tmp_path: Path) -> None:
    path = ask_session.default_path({"XDG_STATE_HOME": str(tmp_path)})

    assert path.startswith(str(tmp_path / "oomdoctor" / "interview-"))
