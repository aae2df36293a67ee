"""A bundle of which any one value is of another kind is read, diagnosed and shown all the same."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.recorder.bundle import read_bundle
from oomdoctor.recorder.diagnosing import Examined, examine
from oomdoctor.recorder.facts_inside import facts_inside
from oomdoctor.recorder.facts_outside import facts_outside
from oomdoctor.recorder.listing import listed
from oomdoctor.recorder.outcome import outcome_of
from oomdoctor.recorder.quoting import Quoting
from oomdoctor.recorder.refusals import failures_inside
from oomdoctor.render.run_json import run_json
from oomdoctor.render.run_page import run_page
from tests.unit.recorder.made import GIB, MIB, bundle, event, lines, refusal, sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from oomdoctor.model.plan import Diagnosis

FAILED = 1
OTHER_KINDS: tuple[Any, ...] = ("text", 7, 0.5, True, [3], {"x": 3}, None)
TOLD: dict[str, Any] = {
    "machine": {"overcommit_mode": 2, "cards": [{"index": 0, "name": "T4", "total_bytes": GIB}]},
    "environment": {"RANK": "0"},
    "recorder": {"pid": 1, "start": 5},
    "process": {"pid": 100, "start": 5},
    "configs": [{"name": "train.yaml", "path": "train.yaml"}],
    "signals": [{"t": 3.0, "signal": 15, "passed_on": True, "sender": "timeout"}],
    "silence": {"seconds": 5.5, "worked": True, "processes": [{"pid": 100, "waits_in": "pipe"}]},
    "silences": [{"seconds": 5.5, "worked": False, "processes": []}],
    "kernel_kills": {"on_machine": 0, "in_group": 0},
    "largest_process_bytes": 5 * MIB,
    "virtual": "T4",
}
MESSAGES = [
    event("hello", 1, parent=99, argv=["train.py"], versions={"python": "3.11.7"}),
    event("phase", 2, phase="load", seconds=1.0, peak_allocated_bytes=MIB, host_bytes=MIB),
    event("step", 3, number=1, tokens=64, longest=32, allocated_bytes=MIB, rss_bytes=MIB),
    event("step", 4, number=2, tokens=64, longest=32, allocated_bytes=MIB, rss_bytes=MIB),
    refusal(5, text="CUDA out of memory.", rows=2, longest=40, tokens=80, fraction=1.0),
    event("error", 6, exception="MemoryError", text="no more", causes=["OSError"], thread=False),
    event("note", 7, text="a hook failed"),
]
SAMPLES = [
    {
        **sample(
            1,
            {
                "pid": 100,
                "rss_bytes": MIB,
                "pss_bytes": MIB,
                "peak_rss_bytes": MIB,
                "address_limit_bytes": GIB,
                "peak_address_bytes": MIB,
            },
            cgroup_limit_bytes=GIB,
            cgroup_used_bytes=MIB,
            cgroup_peak_bytes=MIB,
        ),
        "devices": [{"index": 0, "name": "T4", "total_bytes": GIB, "used_bytes": MIB}],
    },
    sample(2, {"pid": 100, "rss_bytes": 2 * MIB}),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything within a value."""
    items = value.items() if isinstance(value, dict) else ()
    for name, one in (*items, *(enumerate(value) if isinstance(value, list) else ())):
        yield (*path, name)
        yield from places(one, (*path, name))


def changed(whole: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Return a value with something else at one place within it."""
    copied = copy.deepcopy(whole)
    within = copied
    for one in path[:-1]:
        within = within[one]
    within[path[-1]] = other
    return copied


def folder_of(folder: Path, code: int) -> Path:
    """Return a bundle with every file that a recorder writes; a failed one told why from inside."""
    messages = MESSAGES if code == FAILED else MESSAGES[:4]
    ended = {"signal": code - 128} if code > 128 else {}
    return bundle(
        folder,
        told={**TOLD, "exit_code": code, **ended},
        events={"100-5": messages},
        samples=SAMPLES,
    )


def look(folder: Path, diagnosis: Diagnosis) -> None:
    """Read a bundle and tell what is in it as every command does."""
    run = read_bundle(folder)
    outcome = outcome_of(run)
    quoting = Quoting(folder)
    examined = Examined(run=run, outcome=outcome, diagnosis=diagnosis)
    assert [*facts_inside(run, outcome, quoting), *facts_outside(run, outcome, quoting)]
    list(failures_inside(run, quoting))
    assert listed(folder.parent)
    assert json.loads(run_json(examined))["id"]
    assert run_page(examined).title


def test_what_is_left_out_of_the_run_file_is_told(tmp_path: Path) -> None:
    told = {"seconds": "long", "signals": [{"signal": []}], "recorder": {"start": "then"}}
    folder = bundle(tmp_path / "r", told={**told, "exit_code": 1})
    said = [
        "run.json: seconds is text, not a number; this was left out.",
        "run.json: signals[0].signal is a list of 0, not a whole number; this was left out.",
        "run.json: recorder.start is text, not a whole number; this was left out.",
    ]

    examined = examine(read_bundle(folder))

    assert [one for one in run_page(examined).notes if "left out" in one] == said
    assert [one for one in examined.diagnosis.notes if "left out" in one] == said


def test_a_line_with_a_value_of_another_kind_is_left_out_and_counted(tmp_path: Path) -> None:
    messages = [event("step", 1, number=1), event("step", 2, number=2, rss_bytes="much")]
    folder = bundle(tmp_path / "r", events={"100-5": messages})

    run = read_bundle(folder)

    assert (len(run.processes[0].steps), run.skipped) == (1, 1)


@pytest.mark.parametrize("other", OTHER_KINDS, ids=repr)
@pytest.mark.parametrize("code", [FAILED, 137, 143])
def test_any_value_of_the_run_file_may_be_of_another_kind(
    tmp_path: Path, code: int, other: Any
) -> None:
    folder = folder_of(tmp_path / "r", code)
    diagnosis = examine(read_bundle(folder)).diagnosis
    path = folder / "run.json"
    whole = json.loads(path.read_text(encoding="utf-8"))

    for place in places(whole):
        path.write_text(json.dumps(changed(whole, place, other)), encoding="utf-8")
        look(folder, diagnosis)


@pytest.mark.parametrize("other", OTHER_KINDS, ids=repr)
@pytest.mark.parametrize("name", ["processes/100-5/events.jsonl", "samples.jsonl"])
def test_any_value_that_was_recorded_may_be_of_another_kind(
    tmp_path: Path, name: str, other: Any
) -> None:
    folder = folder_of(tmp_path / "r", FAILED)
    diagnosis = examine(read_bundle(folder)).diagnosis
    whole = SAMPLES if name == "samples.jsonl" else MESSAGES

    for place in (one for one in places(whole) if len(one) > 1):
        (folder / name).write_text(lines(changed(whole, place, other)), encoding="utf-8")
        look(folder, diagnosis)
