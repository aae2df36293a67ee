"""What came of a run: the strongest witness decides, and says why."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.model.core import Fact, Failure, Quote
from oomdoctor.probe.processes import stat
from oomdoctor.record import replace
from oomdoctor.recorder.outcome import outcome_of
from tests.unit.recorder.made import event, refusal, run, sample

if TYPE_CHECKING:
    from pathlib import Path

KEY = "100-1"
ON_MACHINE = {"on_machine": 1, "in_group": 0}
IN_GROUP = {"on_machine": 1, "in_group": 1}
NO_KILL = {"on_machine": 0, "in_group": 0}


def error(name: str, text: str = "", **fields: Any) -> dict[str, Any]:
    return event("error", 9, exception=name, text=text, thread=False, **fields)


@pytest.mark.parametrize(
    ("told", "messages", "expected"),
    [
        ({"exit_code": 0}, [], "succeeded"),
        ({"exit_code": 0}, [refusal(5), event("step", 6, number=1)], "succeeded"),
        ({"exit_code": 1}, [refusal(5)], "out-of-device-memory"),
        ({"exit_code": 1}, [refusal(5), error("OutOfMemoryError")], "out-of-device-memory"),
        ({"exit_code": 1}, [refusal(5), error("KeyError", "lr")], "crashed"),
        ({"exit_code": 1}, [refusal(5), event("step", 6, number=1), error("KeyError")], "crashed"),
        ({"exit_code": 1}, [error("MemoryError")], "out-of-host-memory"),
        (
            {"exit_code": 1},
            [error("RuntimeError", "[enforce fail] DefaultCPUAllocator: can't allocate memory")],
            "out-of-host-memory",
        ),
        ({"exit_code": 1}, [refusal(5, device=None, text="refused")], "out-of-host-memory"),
        ({"exit_code": 137, "signal": 9, "kernel_kills": NO_KILL}, [], "killed"),
        ({"exit_code": 137, "signal": 9, "kernel_kills": ON_MACHINE}, [], "killed-by-kernel"),
        ({"exit_code": 1, "kernel_kills": IN_GROUP}, [], "killed-by-kernel"),
        ({"exit_code": 1, "kernel_kills": ON_MACHINE}, [], "crashed"),
        ({"exit_code": 139, "signal": 11}, [], "crashed"),
        ({"exit_code": 143, "signal": 15, "signals": [{"signal": 15}]}, [], "interrupted"),
        ({"exit_code": 1, "signals": [{"signal": 2, "terminal": True}]}, [], "interrupted"),
        ({"exit_code": 1, "signals": [{"signal": 10, "sender": "bash"}]}, [], "crashed"),
        ({"exit_code": 130, "signal": 2, "silence": {"seconds": 700}}, [], "hung"),
        ({"exit_code": 143, "stopped": True, "silence": {"seconds": 700}}, [], "hung"),
        ({"exit_code": 2}, [], "crashed"),
        (None, [event("step", 3, number=1)], "end-unknown"),
        (None, [refusal(5)], "out-of-device-memory"),
    ],
)  # fmt: skip
def test_an_outcome(
    tmp_path: Path, told: dict[str, Any] | None, messages: list[dict[str, Any]], expected: str
) -> None:
    found = outcome_of(run(tmp_path / "r", told=told, events={KEY: messages} if messages else {}))

    assert expected == found.word


def test_a_kill_that_the_kernel_logs_is_of_this_run_where_the_process_is(tmp_path: Path) -> None:
    line = "Memory cgroup out of memory: Killed process {} (python) total-vm:1kB, anon-rss:1kB\n"
    told = {"exit_code": 1, "kernel_kills": {"on_machine": 1, "in_group": 0}}
    seen = [sample(1, {"pid": 4711})]

    ours = run(tmp_path / "a", told=told, samples=seen, kernel=line.format(4711))
    others = run(tmp_path / "b", told=told, samples=seen, kernel=line.format(4712))

    assert outcome_of(ours).word == "killed-by-kernel"
    assert outcome_of(others).word == "crashed"


def test_the_rank_that_ran_out_first_is_named(tmp_path: Path) -> None:
    read = run(
        tmp_path / "r",
        told={"exit_code": 1},
        events={"100-1": [refusal(7, rank=0)], "101-1": [refusal(5, rank=1, pid=101)]},
    )

    found = outcome_of(read)

    assert found.rank == 1
    assert found.why == (
        "256.00 MiB asked for on device 0 could not be had, after 4 steps,"
        " in phase 'train step', on rank 1"
    )


def test_what_is_printed_counts_where_no_process_told(tmp_path: Path) -> None:
    quote = Quote(artifact="output.log", line=3, text="CUDA out of memory. Tried to allocate")
    printed = [Failure(kind="gpu-oom", order=3, line_quote=quote)]
    caught = [replace(printed[0], facts=(Fact(key="oom.caught", value=True),))]

    read = run(tmp_path / "r", told={"exit_code": 1})

    assert outcome_of(read, printed).word == "out-of-device-memory"
    assert outcome_of(read, caught).word == "crashed"


def test_a_run_that_is_recorded_still_is_running(tmp_path: Path) -> None:
    own = stat(os.getpid())
    assert own is not None
    recorder = {"pid": os.getpid(), "start": own.start_ticks}

    alive = run(tmp_path / "a", told={"ended": None, "recorder": recorder})
    recycled = run(tmp_path / "b", told={"ended": None, "recorder": {**recorder, "start": 1}})

    assert outcome_of(alive).word == "running"
    assert outcome_of(recycled).word == "end-unknown"


def test_a_run_without_an_end_may_have_met_a_full_disk(tmp_path: Path) -> None:
    found = outcome_of(run(tmp_path / "r", told={"exit_code": None}))

    assert found.word == "end-unknown"
    assert "or the disk is full" in found.why
