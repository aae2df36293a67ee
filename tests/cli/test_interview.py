"""The interview in a real pseudo-terminal, with honest people who know what a fixture says."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.sitting import ROOT, sit_down

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

PEOPLE = sorted((ROOT / "fixtures" / "interviews").glob("*.yaml"))
MOST_ANSWERS = 4

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")


def log_in(home: Path, text: str) -> str:
    (home / "crash.log").write_text(text, encoding="utf-8")
    return "crash.log"


@pytest.mark.parametrize("path", PEOPLE, ids=lambda path: path.stem)
def test_the_right_cause_leads_after_four_answers_at_most(path: Path, tmp_path: Path) -> None:
    case: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    person: dict[str, object] = case["person"]
    given: list[str] = []

    def answer(question: str) -> str | None:
        if len(given) == MOST_ANSWERS:
            return "quit"
        given.append(question)
        return str(person.get(question, ""))

    sitting = sit_down(["--ask", log_in(tmp_path, case["log"]), "-f", "json"], answer, tmp_path)

    leading = json.loads(sitting.result)["causes"][0]["cause"]
    assert leading in {case["cause"], *case.get("also", ())}, sitting.screen
    assert len(given) <= MOST_ANSWERS


def test_the_screen_shows_how_the_ranking_moves(tmp_path: Path) -> None:
    answers = iter(["in validation, it creeps up", "quit"])

    sitting = sit_down(
        ["--ask", log_in(tmp_path, "RuntimeError: CUDA out of memory.\n")],
        lambda _: next(answers),
        tmp_path,
    )

    assert "understood: run.phase = eval, growth.monotone = yes" in sitting.screen
    assert "% → " in sitting.screen
    assert "leads" in sitting.screen


def test_an_ascii_terminal_gets_ascii(tmp_path: Path) -> None:
    answers = iter(["in validation, it creeps up", "why", "quit"])

    sitting = sit_down(
        ["--ask", log_in(tmp_path, "RuntimeError: CUDA out of memory.\n")],
        lambda _: next(answers),
        tmp_path,
        PYTHONUTF8="0",
        PYTHONIOENCODING="ascii",
        LC_ALL="C",
    )

    assert sitting.screen.isascii()
    assert "% -> " in sitting.screen


def test_why_tells_what_each_answer_would_mean_and_asks_again(tmp_path: Path) -> None:
    answers = iter(["why", "quit"])

    sitting = sit_down(
        ["--ask", log_in(tmp_path, "RuntimeError: CUDA out of memory.\n")],
        lambda _: next(answers),
        tmp_path,
    )

    assert "bits" in sitting.screen
    assert "in evaluation, validation or testing (expected" in sitting.screen


def test_what_is_not_known_is_not_asked_again(tmp_path: Path) -> None:
    answers = iter(["don't know", "?", "", "quit"])

    sitting = sit_down(
        ["--ask", log_in(tmp_path, "RuntimeError: CUDA out of memory.\n")],
        lambda _: next(answers),
        tmp_path,
    )

    assert len(set(sitting.asked)) == len(sitting.asked) == 4


def test_back_puts_the_last_question_again(tmp_path: Path) -> None:
    answers = iter(["6", "back", "4", "quit"])

    sitting = sit_down(
        ["--ask", log_in(tmp_path, "RuntimeError: CUDA out of memory.\n"), "-f", "json"],
        lambda _: next(answers),
        tmp_path,
    )

    assert sitting.asked[0] == sitting.asked[2] == "when"
    assert "run.phase = backward" in sitting.screen


def test_a_left_interview_is_resumed_with_its_answers(tmp_path: Path) -> None:
    log = log_in(tmp_path, "RuntimeError: CUDA out of memory.\n")
    answers = iter(["in validation, it creeps up", None])

    left = sit_down(["--ask", log], lambda _: next(answers), tmp_path)
    kept = next((tmp_path / "state" / "oomdoctor").glob("*.json"))
    again = sit_down(["--resume", str(kept), "-f", "json"], lambda _: "quit", tmp_path)

    assert str(kept) in left.screen.replace("\r\n", "")
    assert left.asked[0] not in again.asked
    assert json.loads(again.result)["causes"][0]["cause"] == "eval-predictions-accumulate"


def test_control_c_leaves_with_the_answers_kept(tmp_path: Path) -> None:
    answers = iter(["6", b"\x03"])

    sitting = sit_down(
        ["--ask", log_in(tmp_path, "RuntimeError: CUDA out of memory.\n"), "-f", "json"],
        lambda _: next(answers),
        tmp_path,
    )

    kept = next((tmp_path / "state" / "oomdoctor").glob("*.json"))
    assert json.loads(kept.read_text())["answers"][0]["facts"] == ["run.phase=eval"]
    assert json.loads(sitting.result)["answer"] == "need_evidence"
    assert sitting.exit == 4


def test_a_paste_with_an_empty_line_in_it_is_one_answer(tmp_path: Path) -> None:
    table = (
        b"Traceback (most recent call last):\n"
        b'  File "train.py", line 9, in main\n    evaluate(model)\n\n'
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a "
        b"total capacity of 23.64 GiB of which 300.00 MiB is free. Process 71 has 15.00 GiB memory "
        b"in use. Process 72 has 8.10 GiB memory in use. "
        b"Of the allocated memory 7.50 GiB is allocated by "
        b"PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.\n\n"
    )
    answers = iter([table, "quit"])

    sitting = sit_down(
        ["--ask", log_in(tmp_path, "RuntimeError: CUDA out of memory.\n"), "-f", "json"],
        lambda _: next(answers),
        tmp_path,
    )

    assert len(sitting.asked) <= 2
    assert json.loads(sitting.result)["event"]["requested_bytes"] == 1610612736


def test_a_wrong_value_is_refused_and_asked_again(tmp_path: Path) -> None:
    answers = iter(["run.phase=lunch", "run.phase=eval", "quit"])

    sitting = sit_down(
        ["--ask", log_in(tmp_path, "RuntimeError: CUDA out of memory.\n")],
        lambda _: next(answers),
        tmp_path,
    )

    assert "none of its choices" in " ".join(sitting.screen.split())
    assert "understood: run.phase = eval" in sitting.screen


def test_without_a_terminal_the_questions_are_the_next_measurements(
    tmp_path: Path, run_python: RunPython
) -> None:
    log = log_in(tmp_path, "RuntimeError: CUDA out of memory.\n")

    done = run_python("-m", "oomdoctor", "diagnose", log, "--ask", "-f", "json", cwd=tmp_path)

    first = json.loads(done.stdout)["next_measurements"][0]
    assert done.returncode == 4
    assert first["command"].startswith("When did it fail?")
    assert first["fact"] == "run.phase"


def test_without_any_input_the_first_question_is_for_the_message(tmp_path: Path) -> None:
    sitting = sit_down(["--ask"], lambda _: "quit", tmp_path)

    assert sitting.asked == ["memory"]


def test_a_file_that_is_no_interview_is_refused(tmp_path: Path, run_python: RunPython) -> None:
    log = log_in(tmp_path, "step 1\n")

    done = run_python("-m", "oomdoctor", "diagnose", "--resume", log, cwd=tmp_path)

    assert done.returncode == 2
    assert b"this is no interview" in done.stderr


def test_bytes_that_are_no_characters_are_an_answer_like_any_other(tmp_path: Path) -> None:
    answers = iter([b"\xff\xfe\xc3\n", "²", "quit"])

    sitting = sit_down(
        ["--ask", log_in(tmp_path, "RuntimeError: CUDA out of memory.\n")],
        lambda _: next(answers),
        tmp_path,
    )

    assert sitting.exit == 4, sitting.screen
    assert "internal error" not in sitting.screen


def test_answers_that_cannot_be_kept_do_not_end_it(tmp_path: Path) -> None:
    answers = iter(["in validation, it creeps up", "?", "quit"])
    (tmp_path / "state").write_text("no folder")

    sitting = sit_down(
        ["--ask", log_in(tmp_path, "RuntimeError: CUDA out of memory.\n")],
        lambda _: next(answers),
        tmp_path,
    )

    assert sitting.screen.count("cannot keep the answers") == 1
    assert "understood: run.phase = eval" in sitting.screen
    assert "Answers are kept" not in sitting.screen
    assert sitting.exit in (0, 4)
