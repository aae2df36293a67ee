"""Trials of commands that never import torch: every outcome, and nothing left behind."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.lab.command_trial import CommandBackend
from oomdoctor.model.trial import CommandSpec, FileEdit, TrialResult, TrialSpec
from tests.hang import no_hang
from tests.lab.test_groups import is_gone, marked

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _guard() -> Iterator[None]:
    with no_hang():
        yield


def run(folder: Path, program: str, *arguments: str, **given: Any) -> TrialResult:
    """Run a program as a trial; what begins with `back_` is of the back end."""
    own = {key[5:]: given.pop(key) for key in list(given) if key.startswith("back_")}
    script = folder / "program.py"
    script.write_text(program, encoding="utf-8")
    command = CommandSpec(
        arguments=(sys.executable, str(script), *arguments),
        folder=str(folder),
        edits=given.pop("edits", ()),
    )
    spec = TrialSpec(values=given.pop("values", {}), command=command, **given)
    return CommandBackend("cpu", folder=folder / "run", **own).run(spec, lambda _: None)


def output_of(result: TrialResult) -> str:
    assert result.output_path is not None
    return Path(result.output_path).read_text(encoding="utf-8")


def test_a_program_that_ends_well_fits_and_its_output_is_kept(tmp_path: Path) -> None:
    program = "import sys; print('rows', sys.argv[1])"

    result = run(tmp_path, program, "--bs=8", values={"batch": 8})

    assert result.outcome == "fit"
    assert result.exit_code == 0
    assert "imported torch" in result.reason
    assert output_of(result) == "rows --bs=8\n"


def test_a_program_that_could_not_be_capped_tells_nothing(tmp_path: Path) -> None:
    result = run(tmp_path, "print('trained')", cap_bytes=1 << 30)

    assert result.outcome == "crash"
    assert "its cap was not in force" in result.reason
    assert result.assumptions == ()


def test_a_time_out_of_a_program_that_is_not_watched_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, "import time; time.sleep(60)", seconds=0.5)

    assert result.outcome == "timeout"
    assert "could be watched" in result.reason


def test_a_program_that_crashes_says_how(tmp_path: Path) -> None:
    result = run(tmp_path, "raise ValueError('no such column')")

    assert result.outcome == "crash"
    assert result.reason == "exit code 1: ValueError: no such column"


def test_a_program_that_hangs_is_ended_after_its_time(tmp_path: Path) -> None:
    result = run(tmp_path, "import time; time.sleep(600)", seconds=1.0)

    assert result.outcome == "timeout"
    assert result.exit_code is None


@pytest.mark.parametrize(("kills", "outcome"), [([3, 4], "host-oom"), ([3, 3], "crash")])
def test_exit_137_is_a_host_oom_where_the_kernel_killed_meanwhile(
    tmp_path: Path, kills: list[int], outcome: str
) -> None:
    counts = iter(kills)

    result = run(tmp_path, "raise SystemExit(137)", back_kernel_kills=lambda: next(counts))

    assert result.outcome == outcome


@pytest.mark.parametrize(("kills", "outcome"), [([3, 4], "host-oom"), ([3, 3], "crash")])
def test_what_a_shell_calls_killed_is_for_want_of_memory_only_if_the_kernel_killed(
    tmp_path: Path, kills: list[int], outcome: str
) -> None:
    counts = iter(kills)
    program = "print('train.sh: line 3:  4711 Killed   sleep 1'); raise SystemExit(1)"

    result = run(tmp_path, program, back_kernel_kills=lambda: next(counts))

    assert result.outcome == outcome
    assert result.killed == (outcome == "crash")


def test_a_memory_error_is_a_host_oom(tmp_path: Path) -> None:
    result = run(tmp_path, "raise MemoryError")

    assert result.outcome == "host-oom"


def test_more_host_memory_than_was_given_ends_the_trial(tmp_path: Path) -> None:
    program = "held = bytearray(300 << 20); import time; time.sleep(600)"

    result = run(tmp_path, program, host_cap_bytes=200 << 20)

    assert result.outcome == "host-oom"
    assert result.identity is not None
    assert result.identity.backend == "host"
    assert result.host_bytes is not None
    assert result.host_bytes > 200 << 20


def test_a_flood_of_output_neither_blocks_nor_fills_the_disk(tmp_path: Path) -> None:
    program = "import sys\nfor _ in range(40): sys.stdout.write('x' * (1 << 20))\nprint('end')"

    result = run(tmp_path, program)

    assert result.outcome == "fit"
    text = output_of(result)
    assert len(text) < 20 << 20
    assert text.endswith("xend\n")


def test_children_that_are_left_behind_are_ended(tmp_path: Path) -> None:
    program = (
        "import os, subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
        " start_new_session=True)\n"
        "print(os.environ['OOMDOCTOR_TRIAL_MARK'])\n"
    )

    result = run(tmp_path, program)

    assert is_gone(output_of(result).strip(), 0)


def test_a_reason_to_stop_ends_the_trial_as_refused(tmp_path: Path) -> None:
    began = time.monotonic()

    result = run(
        tmp_path,
        "import time; time.sleep(600)",
        back_stop=lambda: "others need the card" if time.monotonic() > began + 1 else None,
    )

    assert result.outcome == "refused"
    assert result.reason == "others need the card"


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    def stop() -> str | None:
        raise KeyboardInterrupt

    program = "import os, time; print(os.environ['OOMDOCTOR_TRIAL_MARK'], flush=True)"
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, f"{program}\ntime.sleep(600)", back_stop=stop)

    logs = list(tmp_path.rglob("output.log"))
    marks = [one.read_text(encoding="utf-8").strip() for one in logs]
    assert len(marks) == 1
    assert all(marked(mark) == [] for mark in marks if mark)


def test_a_command_that_does_not_start_is_a_crash_that_says_so(tmp_path: Path) -> None:
    spec = TrialSpec(values={}, command=CommandSpec(arguments=("/nowhere",), folder="/"))

    result = CommandBackend("cpu", folder=tmp_path).run(spec, lambda _: None)

    assert result.outcome == "crash"
    assert result.reason == "the command does not start: No such file or directory"


def test_braces_of_the_command_itself_are_left_although_a_value_has_their_name(
    tmp_path: Path,
) -> None:
    result = run(tmp_path, "import sys; print(sys.argv[1])", "{arm}", values={"arm": "baseline"})

    assert output_of(result) == "{arm}\n"


def test_an_edited_copy_is_read_in_place_of_the_config(tmp_path: Path) -> None:
    config = tmp_path / "train.json"
    config.write_text('{"rows": 1}', encoding="utf-8")
    program = "import json, sys; sys.exit(json.load(open(sys.argv[1]))['rows'])"
    edit = FileEdit(path="train.json", key="rows", value=7)

    result = run(tmp_path, program, "train.json", edits=(edit,), values={"batch": 7})

    assert result.exit_code == 7
    assert config.read_text(encoding="utf-8") == '{"rows": 1}'


def test_trials_run_side_by_side_in_threads(tmp_path: Path) -> None:
    results: dict[int, TrialResult] = {}

    def one(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        results[number] = run(folder, f"raise SystemExit({number})")

    threads = [threading.Thread(target=one, args=(number,)) for number in (3, 4, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {number: one.exit_code for number, one in results.items()} == {3: 3, 4: 4, 5: 5}
