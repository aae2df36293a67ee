"""A bundle is read whatever state it is in, and half-written lines are counted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import InputError
from oomdoctor.recorder.bundle import read_bundle
from oomdoctor.recorder.diagnosing import examine
from oomdoctor.recorder.outcome import CRASHED, DEVICE_OOM
from tests.hang import no_hang
from tests.unit.recorder.made import MIB, bundle, event, refusal, run, sample

if TYPE_CHECKING:
    from collections.abc import Callable


def test_steps_and_phases_of_a_process_are_gathered(tmp_path: Path) -> None:
    messages = [
        event("hello", 1, argv=["train.py"], versions={"python": "3.11.7"}),
        event("torch", 1, version="2.13.0"),
        event("phase", 5, phase="load", seconds=4.0, peak_allocated_bytes=10 * MIB),
        event("step", 6, number=1, phase="train step", peak_allocated_bytes=30 * MIB, rank=3),
        event("step", 7, number=2, phase="train step", peak_allocated_bytes=20 * MIB),
        event("phase", 7, phase="train step", seconds=2.0, peak_allocated_bytes=20 * MIB),
        event("exit", 8, number=2),
    ]

    process = run(tmp_path / "r", events={"100-5": messages}).processes[0]

    assert (process.pid, process.rank, process.program) == (100, 3, ("train.py",))
    assert dict(process.versions) == {"python": "3.11.7", "torch": "2.13.0"}
    assert [(one.number, one.line) for one in process.steps] == [(1, 4), (2, 5)]
    peaks = {one.name: (one.peak_allocated_bytes, one.seconds) for one in process.phases}
    assert peaks == {"load": (10 * MIB, 4.0), "train step": (30 * MIB, 2.0)}
    assert process.exited


def test_an_error_that_a_process_got_over_is_told_from_one_that_ended_it(tmp_path: Path) -> None:
    over = [refusal(5), event("step", 6, number=1)]
    ended = [event("step", 4, number=1), refusal(5)]

    found = run(tmp_path / "r", events={"100-1": over, "101-1": ended}).processes

    assert [one.ooms[0].went_on for one in found] == [True, False]


def test_lines_that_are_no_objects_are_left_out_and_counted(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "r", events={"100-1": [event("step", 1, number=1)]})
    path = folder / "processes" / "100-1" / "events.jsonl"
    path.write_bytes(path.read_bytes() + b'[1]\n\xff\xfe\n\n{"type":"step","number":2,"t')

    read = read_bundle(folder)

    assert read.skipped == 3
    assert [one.number for one in read.processes[0].steps] == [1]


def test_values_that_no_recorder_writes_are_left_out(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "r", events={"100-1": [event("step", 1, number=1)]})
    told, events = folder / "run.json", folder / "processes" / "100-1" / "events.jsonl"
    endless = ("NaN", "1e400", "9" * 4000)
    with events.open("a", encoding="utf-8") as file:
        file.write("[" * 100_000 + "\n")
        file.writelines(f'{{"type":"step","t":{one},"number":2}}\n' for one in endless)

    assert read_bundle(folder).skipped == 1
    for one in endless:
        told.write_text(f'{{"seconds": {one}}}', encoding="utf-8")
        assert read_bundle(folder).seconds is None


def test_a_run_file_that_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "r")
    (folder / "run.json").write_text('{"a":' * 50_000, encoding="utf-8")

    with pytest.raises(InputError, match="nested too deep"):
        read_bundle(folder)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
@pytest.mark.parametrize(
    "name",
    [
        "samples.jsonl",
        "output.log",
        "output.000001.part",
        "kernel.log",
        "processes/100-5/events.jsonl",
        "processes/100-5/arguments.json",
        "processes/100-5/oom-1/versions.json",
        "processes/100-5/oom-1/snapshot.pickle",
    ],
)
def test_what_is_no_file_in_a_bundle_is_neither_waited_for_nor_a_crash(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    folder = bundle(tmp_path / "r", told={"exit_code": 1}, events={"100-5": [refusal(1)]})
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)

    with no_hang():
        examined = examine(read_bundle(folder))

    assert examined.outcome.word in (DEVICE_OOM, CRASHED)


def test_a_folder_without_a_run_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_bundle(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00"])
def test_a_damaged_run_file_is_told_as_such(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match="file of a run"):
        read_bundle(tmp_path)


def test_shared_pages_are_not_added_up_twice(tmp_path: Path) -> None:
    alone = sample(1, {"pid": 1, "rss_bytes": 5 * MIB})
    split = sample(2, {"pid": 1, "pss_bytes": 3 * MIB}, {"pid": 2, "pss_bytes": 4 * MIB})
    unknown = sample(3, {"pid": 1, "rss_bytes": 3 * MIB}, {"pid": 2, "rss_bytes": 4 * MIB})

    found = run(tmp_path / "r", samples=[alone, split, unknown]).samples

    assert [one.job_bytes for one in found] == [5 * MIB, 7 * MIB, None]


def test_processes_of_a_run_are_known_from_inside_and_outside(tmp_path: Path) -> None:
    read = run(
        tmp_path / "r",
        told={"exit_code": 0, "process": {"pid": 99, "start": 1}},
        events={"100-1": [event("hello", 1)]},
        samples=[sample(1, {"pid": 101})],
    )

    assert read.pids() == {99, 100, 101}
