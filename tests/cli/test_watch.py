"""`oomdoctor watch` as people and scripts call it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from tests.cli.watched import MIB, bundle, leaking, steady

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal and /proc")


def watch(run_python: RunPython, *arguments: str, cwd: Path) -> CompletedProcess[bytes]:
    return run_python("-m", "oomdoctor", "watch", *arguments, cwd=cwd)


def test_a_run_that_is_over_is_read_at_once(run_python: RunPython, tmp_path: Path) -> None:
    made = bundle(tmp_path, leaking(), rank=0)

    done = watch(run_python, str(made), cwd=tmp_path)

    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert "device leak: rank 0 (4711)" in text
    assert "What is kept on the card rises by 40.00 MiB per step" in text
    assert "would have been full at step about 333" in " ".join(text.split())
    assert "this could be told at step" in " ".join(text.split())
    assert done.stderr == b""


def test_a_run_without_growth_is_calm(run_python: RunPython, tmp_path: Path) -> None:
    made = bundle(tmp_path, steady())

    done = watch(run_python, str(made), "--fail-on", "growth", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "steady: process 4711. It stays near 1.00 GiB." in done.stdout.decode()


@pytest.mark.parametrize(
    ("conditions", "code"),
    [
        (["leak"], 1),
        (["growth"], 1),
        (["oom-in=30s"], 0),
        (["oom-in=5m"], 1),
        (["oom-in=30s", "leak"], 1),
    ],
)
def test_the_exit_code_tells_what_was_asked_for(
    run_python: RunPython, tmp_path: Path, conditions: list[str], code: int
) -> None:
    made = bundle(tmp_path, leaking(), running=True)
    asked = [word for one in conditions for word in ("--fail-on", one)]

    done = watch(run_python, str(made), "--once", *asked, cwd=tmp_path)

    assert done.returncode == code, done.stderr


@pytest.mark.parametrize("condition", ["leaks", "oom-in=soon", "oom-in"])
def test_an_unknown_condition_is_refused(
    run_python: RunPython, tmp_path: Path, condition: str
) -> None:
    done = watch(run_python, "1", "--fail-on", condition, cwd=tmp_path)

    assert done.returncode == 2


def test_a_look_is_a_line_of_json(run_python: RunPython, tmp_path: Path) -> None:
    made = bundle(tmp_path, leaking(), running=True, rank=3)

    done = watch(run_python, str(made), "--json", "--once", cwd=tmp_path)

    look = json.loads(done.stdout)
    schema = json.loads((ROOT / "docs" / "watch.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(look, schema)
    worst = look["verdicts"][0]
    assert look["processes"][0]["step"] == 200
    assert (worst["kind"], worst["level"], worst["rank"]) == ("device-leak", "alarm", 3)
    assert worst["unit"] == "step"
    assert worst["slope_bytes"] == pytest.approx(40 * MIB, rel=0.01)
    assert worst["forecast"]["step"] == pytest.approx(333, abs=5)
    assert worst["forecast"]["seconds"] == pytest.approx(66, abs=4)


def test_an_alert_goes_to_a_file_and_to_a_command_that_no_shell_reads(
    run_python: RunPython, tmp_path: Path
) -> None:
    made = bundle(tmp_path, leaking(), running=True)
    told = tmp_path / "told"
    program = tmp_path / "alert.py"
    program.write_text(
        "import os, sys, pathlib\n"
        "told = os.environ['OOMDOCTOR_ALERT'] + ' ' + sys.argv[2] + ' ' + sys.stdin.read()\n"
        "pathlib.Path(sys.argv[1]).write_text(told)\n",
        encoding="utf-8",
    )
    command = f"{sys.executable} {program} {told} $(id)"

    watch(
        run_python,
        *(str(made), "--for", "1s", "--every", "0.2s"),
        *("--alert-file", str(tmp_path / "alerts.jsonl"), "--alert-command", command),
        cwd=tmp_path,
    )

    lines = (tmp_path / "alerts.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])["alert"] == "device leak: process 4711"
    kind, argument, text = told.read_text(encoding="utf-8").split(" ", 2)
    assert (kind, argument) == ("device-leak", "$(id)")
    assert json.loads(text) == json.loads(lines[0])


def test_a_command_that_is_not_there_ends_no_watch(run_python: RunPython, tmp_path: Path) -> None:
    made = bundle(tmp_path, leaking(), running=True)

    done = watch(run_python, str(made), "--once", "--alert-command", "no-such", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "the alert command 'no-such' failed" in done.stdout.decode()


def test_half_a_line_waits_for_its_other_half(run_python: RunPython, tmp_path: Path) -> None:
    made = bundle(tmp_path, steady(20), running=True)
    path = made / "processes" / "4711-1" / "events.jsonl"
    path.write_text(path.read_text(encoding="utf-8") + 'garbage\n[1]\n{"type": "st', "utf-8")

    done = watch(run_python, str(made), "--json", "--once", cwd=tmp_path)

    assert json.loads(done.stdout)["processes"][0]["step"] == 20


def test_a_run_that_ran_out_of_memory_names_what_says_why(
    run_python: RunPython, tmp_path: Path
) -> None:
    made = bundle(tmp_path, [*leaking(40), {"type": "oom", "phase": "train step"}])

    done = watch(run_python, str(made), cwd=tmp_path)

    text = done.stdout.decode()
    assert "40  out of memory" in text
    assert f"`oomdoctor show {made.name}` says why" in text


def test_a_bundle_without_its_run_file_is_read(run_python: RunPython, tmp_path: Path) -> None:
    made = bundle(tmp_path, leaking())
    (made / "run.json").unlink()

    done = watch(run_python, str(made), cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "device leak: process 4711" in done.stdout.decode()


def test_nothing_to_watch_says_what_could_be(run_python: RunPython, tmp_path: Path) -> None:
    done = watch(run_python, cwd=tmp_path)

    assert done.returncode == 2
    assert "nothing to watch" in done.stderr.decode()
    assert "oomdoctor run -- COMMAND" in done.stderr.decode()


def test_the_run_that_is_recorded_is_found(run_python: RunPython, tmp_path: Path) -> None:
    bundle(tmp_path / ".oomdoctor" / "runs", steady(), running=True)

    done = watch(run_python, "--once", cwd=tmp_path)
    by_pid = watch(run_python, "4711", "--once", cwd=tmp_path)

    assert done.stdout.decode().startswith("run 20261130-120000-train  1 min 40 s, running")
    assert by_pid.stdout == done.stdout


@pytest.mark.parametrize(
    ("form", "start", "curve"),
    [("markdown", "## run 2026", "kept after a step"), ("html", "<!doctype html>", "<svg")],
)
def test_the_last_page_can_be_passed_on(
    run_python: RunPython, tmp_path: Path, form: str, start: str, curve: str
) -> None:
    made = bundle(tmp_path, leaking(), rank=0)

    done = watch(run_python, str(made), "-f", form, "-o", "page", cwd=tmp_path)

    page = (tmp_path / "page").read_text(encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert page.startswith(start)
    assert "device leak: rank 0 (4711)" in page
    assert curve in page
