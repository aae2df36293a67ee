"""A recorded command is the same command: its streams, its exit code, its signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.hang import no_hang
from tests.recorder.running import environment, last_run, record, under_way, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
LATER_S = 30


@pytest.fixture(autouse=True)
def _guard() -> Iterator[None]:
    with no_hang():
        yield


def test_a_command_that_is_not_python_leaves_a_whole_bundle(tmp_path: Path) -> None:
    done = record(tmp_path, "sh", "-c", "echo out; echo err >&2; exit 3")

    assert done.code == 3
    assert done.output == b"out\n"
    assert done.errors.startswith(b"err\noomdoctor: crashed; exit code 3 - .oomdoctor/runs/")
    assert done.errors.count(b"\n") == 2
    names = {one.name for one in done.run.folder.iterdir()}
    assert {"run.json", "output.log", "samples.jsonl", "diagnosis.json", "report.txt"} <= names
    told = done.told
    assert (told["exit_code"], told["outcome"]) == (3, "crashed")
    assert told["command"] == ["sh", "-c", "echo out; echo err >&2; exit 3"]


def test_what_succeeds_is_said_to_have_succeeded(tmp_path: Path) -> None:
    done = record(tmp_path, "true")

    assert done.code == 0
    assert done.last_line.startswith("oomdoctor: succeeded - ")
    assert not any("host-ram" in cause for cause in done.causes)


def test_a_quiet_run_adds_nothing_to_any_stream(tmp_path: Path) -> None:
    done = record(tmp_path, "sh", "-c", "echo out; echo err >&2", options=("-q",))

    assert (done.output, done.errors) == (b"out\n", b"err\n")


def test_both_streams_and_the_input_pass_byte_for_byte(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096 + b"no line feed at the end"
    (tmp_path / "data").write_bytes(data)

    done = record(tmp_path, "sh", "-c", "cat; cat data >&2", options=("-q",), stdin=data)

    assert (done.output == data, done.errors == data) == (True, True)
    assert len((done.run.folder / "output.log").read_bytes()) == 2 * len(data)


def test_a_flood_of_output_is_kept_in_part_and_passed_on_whole(tmp_path: Path) -> None:
    script = "import sys\nfor n in range(9): sys.stdout.write(f'{n}' * (8 << 20))"

    done = record(tmp_path, sys.executable, "-c", script, options=("-q", "--no-inject"))

    assert len(done.output) == 9 * (8 << 20)
    kept = (done.run.folder / "output.log").read_bytes()
    assert kept[: 4 << 20] == done.output[: 4 << 20]
    assert kept[-(32 << 20) :] == done.output[-(32 << 20) :]
    assert b"[oomdoctor left out " in kept
    assert sorted(one.name for one in done.run.folder.glob("output*")) == ["output.log"]


def test_who_reads_no_more_ends_the_command_as_ever(tmp_path: Path) -> None:
    line = " ".join([*words("-q"), "yes", "|", "head", "-1"])

    done = subprocess.run(
        ["bash", "-c", f'{line}; echo "${{PIPESTATUS[0]}}"'],
        cwd=tmp_path,
        capture_output=True,
        env=environment(),
        timeout=60,
        check=False,
    )

    assert done.stdout == b"y\n141\n"


def test_a_command_that_is_killed_ends_with_the_code_of_a_shell(tmp_path: Path) -> None:
    done = record(tmp_path, "sh", "-c", "echo begun; kill -KILL $$")

    assert (done.code, done.told["signal"], done.told["outcome"]) == (137, 9, "killed")
    assert done.causes[0] == "ended-from-outside"  # and not that memory ran out


def test_a_signal_for_the_recorder_reaches_the_command(tmp_path: Path) -> None:
    script = 'trap "echo told; exit 7" USR1; echo ready; while :; do sleep 0.1; done'
    with under_way(tmp_path, "bash", "-c", script) as (process, output):
        process.send_signal(signal.SIGUSR1)
        rest = output.read()

    assert (rest, process.returncode) == (b"told\n", 7)
    signals = last_run(tmp_path).told["signals"]
    assert [(one["signal"], one["passed_on"]) for one in signals] == [(signal.SIGUSR1, True)]


def test_a_request_to_end_is_no_shortage_of_memory(tmp_path: Path) -> None:
    script = "echo ready; exec sleep 60"
    with under_way(tmp_path, "sh", "-c", script, options=()) as (process, _):
        process.terminate()
        _, errors = process.communicate()

    assert process.returncode == 143
    assert errors.startswith(b"oomdoctor: interrupted; ended-from-outside")


def test_a_command_that_is_not_there_leaves_no_bundle(tmp_path: Path) -> None:
    done = subprocess.run(
        [*words(), "no-such-program"],
        cwd=tmp_path,
        capture_output=True,
        env=environment(),
        check=False,
    )

    assert done.returncode == 127
    assert b"no-such-program: No such file or directory" in done.stderr
    assert list((tmp_path / ".oomdoctor" / "runs").iterdir()) == []


def test_where_no_bundle_can_be_kept_the_command_runs_all_the_same(tmp_path: Path) -> None:
    (tmp_path / ".oomdoctor").write_text("in the way", encoding="utf-8")

    done = subprocess.run(
        [*words("-q"), "sh", "-c", "echo out; exit 4"],
        cwd=tmp_path,
        capture_output=True,
        env=environment(TMPDIR=str(tmp_path)),
        check=False,
    )

    assert (done.returncode, done.stdout) == (4, b"out\n")
    assert b"no bundle can be kept in" in done.stderr
    kept = list(tmp_path.glob("oomdoctor-*/runs/*/run.json"))
    assert [json.loads(one.read_text())["exit_code"] for one in kept] == [4]


def test_what_the_command_leaves_running_may_print_on(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    script = "(read -r _ <gate; echo late) & echo ready"
    with under_way(tmp_path, "sh", "-c", script) as (process, output):
        assert process.wait(LATER_S) == 0
        (tmp_path / "gate").write_text("go\n")
        assert output.read() == b"late\n"


def test_a_recorder_that_is_killed_leaves_the_command_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    script = "echo ready; read -r _ <gate; echo late"
    with under_way(tmp_path, "sh", "-c", script) as (process, output):
        process.kill()
        process.wait(LATER_S)
        (tmp_path / "gate").write_text("go\n")
        assert output.read() == b"late\n"

    run = last_run(tmp_path)
    assert (run.has_ended, run.alive) == (False, False)
    assert (run.folder / "output.log").read_bytes() == b"ready\nlate\n"
