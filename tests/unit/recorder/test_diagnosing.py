"""What was recorded joins what was printed: facts with their places, failures that no log shows."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.cli.run_end import conclude
from oomdoctor.recorder import run_file
from oomdoctor.recorder.bundle import read_bundle
from oomdoctor.recorder.diagnosing import Wishes, examine
from oomdoctor.recorder.outcome import CRASHED
from tests.unit.recorder.made import GIB, MIB, bundle, event, refusal, sample

if TYPE_CHECKING:
    from pathlib import Path

    from oomdoctor.model.core import Fact
    from oomdoctor.recorder.diagnosing import Examined

KEY = "100-1"
FAILED = {"exit_code": 1, "kernel_kills": {"on_machine": 0, "in_group": 0}}


def examined(folder: Path, **given: Any) -> Examined:
    return examine(read_bundle(bundle(folder, **{"told": FAILED, **given})))


def fact(found: Examined, key: str) -> Fact:
    return found.diagnosis.facts[key]


def test_a_refusal_that_no_log_shows_is_diagnosed_with_all_its_digits(tmp_path: Path) -> None:
    found = examined(tmp_path / "r", events={KEY: [event("step", 4, number=4), refusal(5)]})

    assert found.outcome.word == "out-of-device-memory"
    assert found.diagnosis.resource == "gpu"
    assert fact(found, "oom.requested").value == 256 * MIB
    assert fact(found, "oom.capacity").value == 16 * GIB
    assert fact(found, "torch.allocated").value == 15 * GIB
    quote = fact(found, "oom.requested").quotes[0]
    assert quote.artifact.endswith("processes/100-1/events.jsonl")
    assert (quote.line, quote.text) == (2, f'"requested_bytes":{256 * MIB}')


def test_a_refusal_that_a_log_shows_is_counted_once(tmp_path: Path) -> None:
    output = (
        "Traceback (most recent call last):\n"
        '  File "/work/train.py", line 12, in main\n    loss.backward()\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a "
        "total capacity of 16.00 GiB of which 100.00 MiB is free.\n"
    )

    found = examined(tmp_path / "r", events={KEY: [refusal(5)]}, output=output)

    assert fact(found, "oom.events").value == 1
    assert fact(found, "oom.requested").quotes[0].artifact.endswith("output.log")


@pytest.mark.parametrize(
    ("messages", "phase"),
    [
        (
            [refusal(5), event("error", 5, exception="OutOfMemoryError", phase="load")],
            None,
        ),
        ([event("step", 4, number=4, phase="train step")], None),
        ([event("phase", 4, phase="load", seconds=4.0)], "load"),
    ],
)
def test_a_failing_program_of_which_no_model_was_called_is_not_said_to_load_one(
    tmp_path: Path, messages: list[dict[str, Any]], phase: str | None
) -> None:
    found = examined(tmp_path / "r", events={KEY: messages})

    told = found.diagnosis.facts.get("run.phase")
    assert (told and told.value) == phase


def test_steps_that_a_log_states_outrank_those_that_were_recorded(tmp_path: Path) -> None:
    messages = [event("step", at, number=at) for at in range(1, 5)]
    output = "step 3/10 loss 1.0\nMemoryError\n"

    found = examined(tmp_path / "r", events={KEY: messages}, output=output)

    assert found.diagnosis.conflicts == ()


def test_a_rise_over_steps_is_a_fact_with_its_slope(tmp_path: Path) -> None:
    messages = [
        event(
            "step",
            at,
            number=at,
            phase="train step",
            allocated_bytes=GIB + at * 64 * MIB,
            peak_allocated_bytes=2 * GIB + at * 64 * MIB,
            reserved_bytes=3 * GIB + at * 64 * MIB,
        )
        for at in range(1, 61)
    ]

    found = examined(tmp_path / "r", events={KEY: [*messages, refusal(61, step=60)]})

    assert fact(found, "growth.monotone").value is True
    assert fact(found, "growth.quantity").value == "allocated"
    assert abs(int(fact(found, "growth.per_step").value) - 64 * MIB) < MIB
    assert fact(found, "run.step").value == 60


def test_a_kill_that_the_kernel_only_counts_is_a_shortage_of_the_group(tmp_path: Path) -> None:
    limit = {"cgroup_limit_bytes": GIB, "cgroup_used_bytes": GIB - MIB}
    told = {"exit_code": 137, "signal": 9, "kernel_kills": {"on_machine": 1, "in_group": 1}}

    found = examined(tmp_path / "r", told=told, samples=[sample(1, {"pid": 5}, **limit)])

    assert found.diagnosis.answer == "not_gpu_oom"
    assert found.diagnosis.causes[0].cause == "slurm-cgroup-limit"
    assert fact(found, "host.group_limit").value == GIB


def test_a_run_that_printed_what_is_no_text_is_examined_all_the_same(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "r", told=FAILED)
    (folder / "output.log").write_bytes(bytes(range(256)) * 100)

    found = examine(read_bundle(folder))

    assert found.outcome.word == "crashed"
    assert any("binary" in note for note in found.diagnosis.notes)


def test_further_inputs_and_facts_join_the_bundle(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "r", told=FAILED, events={KEY: [refusal(5)]})
    table = tmp_path / "train.yaml"
    table.write_text("per_device_train_batch_size: 8\n", encoding="utf-8")

    found = examine(
        read_bundle(folder), Wishes(configs=(str(table),), facts=("gpu.name=RTX 4090",))
    )

    assert fact(found, "gpu.name").value == "RTX 4090"
    assert any(one.id.endswith("train.yaml") for one in found.diagnosis.artifacts)


def test_the_others_on_a_card_are_told(tmp_path: Path) -> None:
    card = {"index": 0, "total_bytes": 16 * GIB, "used_bytes": 15 * GIB, "others_bytes": 9 * GIB}
    seen = {**sample(1), "devices": [card]}

    found = examined(tmp_path / "r", events={KEY: [refusal(5)]}, samples=[seen])

    assert fact(found, "gpu.foreign").value == 9 * GIB


def test_a_report_for_which_there_is_no_room_is_said_and_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = bundle(tmp_path / "r", told={"exit_code": 3})
    monkeypatch.setattr(run_file, "write_whole", full)

    concluded = conclude(folder)

    assert concluded.examined.outcome.word == CRASHED
    assert concluded.line == (
        f"oomdoctor: crashed; exit code 3 - {folder}"
        " (its report could not be kept: No space left on device)"
    )
