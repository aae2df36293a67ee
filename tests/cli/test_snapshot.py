"""`oomdoctor snapshot` as people type it."""

from __future__ import annotations

import csv
import io
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.memory.allocator_oom import OutOfMemoryError
from tests.unit.snapshot.planted import LEAK, MIB, SETUP, Recorded, layer, leak, train

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that leaks 8 MiB per step, and one that does not."""
    made: Path = tmp_path_factory.mktemp("snapshots")
    leaking = train(Recorded(), steps=12, extra=leak(8 * MIB)).snapshot()
    (made / "leak.pickle").write_bytes(pickle.dumps(leaking, protocol=4))
    innocent = train(Recorded(), steps=12).snapshot()
    (made / "innocent.json").write_text(json.dumps(innocent), encoding="utf-8")
    run = Recorded(capacity=220 * MIB)
    run.free(*[run.alloc(100 * MIB, layer()) for _ in range(2)])
    for _ in range(2):
        run.alloc(90 * MIB, layer())
        run.alloc(5 * MIB, LEAK)
    with pytest.raises(OutOfMemoryError):
        run.alloc(25 * MIB, SETUP)
    (made / "failed.json").write_text(json.dumps(run.snapshot()), encoding="utf-8")
    return made


def snapshot(run_python: RunPython, folder: Path, *arguments: str) -> CompletedProcess[bytes]:
    return run_python("-m", "oomdoctor", "snapshot", *arguments, cwd=folder)


def test_a_leak_is_a_finding(run_python: RunPython, folder: Path) -> None:
    done = snapshot(run_python, folder, "report", "leak.pickle")

    assert done.returncode == 1, done.stderr
    assert done.stdout.decode().startswith("leak.pickle\n  /home/me/train.py:22 in main keeps")


def test_an_innocent_run_is_none(run_python: RunPython, folder: Path) -> None:
    done = snapshot(run_python, folder, "report", "innocent.json", "-q")

    assert done.returncode == 0, done.stderr
    assert "No line keeps more and more" in done.stdout.decode()
    assert "What was held" not in done.stdout.decode()


@pytest.mark.parametrize(
    ("form", "start"), [("json", "{"), ("markdown", "## leak"), ("html", "<!doctype html>")]
)
def test_every_format_is_written(
    run_python: RunPython, folder: Path, form: str, start: str
) -> None:
    done = snapshot(run_python, folder, "report", "leak.pickle", "-f", form)

    assert done.returncode == 1, done.stderr
    assert done.stdout.decode().lower().startswith(start)


def test_what_is_no_snapshot_is_refused(run_python: RunPython, folder: Path) -> None:
    (folder / "none.pickle").write_bytes(b"cos\nsystem\n(S'true'\ntR.")

    done = snapshot(run_python, folder, "report", "none.pickle")

    assert done.returncode == 2
    assert "none.pickle: the pickle is no snapshot: instruction GLOBAL" in done.stderr.decode()


def told(run_python: RunPython, folder: Path, *arguments: str, status: int = 0) -> dict[str, Any]:
    done = snapshot(run_python, folder, *arguments, "-f", "json")
    assert done.returncode == status, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["schema_version"] == 1
    return found


def test_the_largest_holders_come_first(run_python: RunPython, folder: Path) -> None:
    (device,) = told(run_python, folder, "top", "leak.pickle", "--at", "end", "-n", "2")["devices"]

    assert device["held_bytes"] == 8 * (64 + 128) * MIB + 12 * 8 * MIB
    assert [one["held_bytes"] for one in device["rows"]] == [8 * 128 * MIB, 8 * 64 * MIB]
    assert device["rows"][0]["category"] == "optimizer"
    assert device["rows"][1]["frames"] == [
        {"file": "/home/me/train.py", "line": 10, "name": "main"}
    ]


@pytest.mark.parametrize("by", ["line", "stack", "category"])
def test_holders_are_added_up_as_asked(run_python: RunPython, folder: Path, by: str) -> None:
    (device,) = told(run_python, folder, "top", "leak.pickle", "--by", by, "-n", "99")["devices"]

    assert sum(one["held_bytes"] for one in device["rows"]) == device["held_bytes"]
    assert sum(one["blocks"] for one in device["rows"]) == device["blocks"]


def test_rows_that_are_left_out_are_counted(run_python: RunPython, folder: Path) -> None:
    done = snapshot(run_python, folder, "top", "leak.pickle", "-n", "1")

    assert "more are left out; -n shows more." in done.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--at", "failure"), "no request failed in the trace"),
        (("--at", "noon"), "'noon' is no moment"),
        (("--device", "3"), "the snapshot says nothing of GPU 3; it has 0"),
    ],
)
def test_a_moment_or_card_that_is_not_there_is_told(
    run_python: RunPython, folder: Path, arguments: tuple[str, ...], says: str
) -> None:
    done = snapshot(run_python, folder, "top", "leak.pickle", *arguments)

    assert done.returncode == 2
    assert says in done.stderr.decode()


def test_the_difference_is_the_leak(run_python: RunPython, folder: Path) -> None:
    found = told(
        run_python, folder, "diff", "innocent.json", "leak.pickle", "--at", "end", status=1
    )

    (device,) = found["devices"]
    (change,) = device["changes"]
    assert change["change_bytes"] == device["after_bytes"] - device["before_bytes"] == 96 * MIB
    assert (change["before_blocks"], change["after_blocks"]) == (0, 12)
    assert change["frame"]["line"] == 22


def test_the_same_snapshot_has_no_difference(run_python: RunPython, folder: Path) -> None:
    done = snapshot(run_python, folder, "diff", "leak.pickle", "leak.pickle")

    assert done.returncode == 0
    assert "each line as much" in done.stdout.decode()


def test_a_difference_is_signed(run_python: RunPython, folder: Path) -> None:
    done = snapshot(run_python, folder, "diff", "leak.pickle", "innocent.json", "--at", "end")

    assert done.returncode == 1
    assert "GPU 0: -96.00 MiB" in done.stdout.decode()


def test_a_setting_that_would_have_helped_is_told(run_python: RunPython, folder: Path) -> None:
    done = snapshot(
        run_python, folder, "what-if", "failed.json", "--alloc-conf", "expandable_segments:True"
    )

    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.decode().split())
    assert "With expandable_segments:True, on 220.00 MiB, GPU 0 runs to the end" in words


def test_a_card_that_is_too_small_is_told(run_python: RunPython, folder: Path) -> None:
    found = told(run_python, folder, "what-if", "leak.pickle", "--capacity", "1GiB", status=1)

    (outcome,) = found["devices"][0]["outcomes"]
    assert not outcome["fits"]
    assert outcome["capacity_bytes"] == 1024 * MIB
    assert outcome["failed_at_event"] is not None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--capacity", "large"), "'large' is no size"),
        (("--alloc-conf", "nonsense:1"), "Unrecognized key 'nonsense'"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    run_python: RunPython, folder: Path, arguments: tuple[str, ...], says: str
) -> None:
    done = snapshot(run_python, folder, "what-if", "leak.pickle", *arguments)

    assert done.returncode == 2
    assert says in done.stderr.decode()


def exported(run_python: RunPython, folder: Path, form: str, *arguments: str) -> str:
    done = snapshot(run_python, folder, "export", "leak.pickle", "--to", form, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_every_block_is_a_row(run_python: RunPython, folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(run_python, folder, "csv"))))
    listed = json.loads(exported(run_python, folder, "json"))

    kept = [one for one in rows if one["line"] == "22"]
    assert [one["block_bytes"] for one in kept] == ["8388608"] * 12
    assert {one["let_go_at_event"] for one in kept} == {""}
    assert len(listed["blocks"]) == len(rows)
    block = next(one for one in listed["blocks"] if one["line"] == 22)
    assert listed["stacks"][block["stack"]]["frames"][-1]["name"] == "<module>"


def test_folded_stacks_add_up_to_what_is_held(run_python: RunPython, folder: Path) -> None:
    lines = exported(run_python, folder, "folded", "--at", "end").splitlines()

    sizes = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}
    assert sum(sizes.values()) == 8 * (64 + 128) * MIB + 12 * 8 * MIB
    leaking = "GPU 0;<module> (/home/me/train.py:90);main (/home/me/train.py:22)"
    assert sizes[leaking] == 12 * 8 * MIB


def test_speedscope_has_the_same_weights(run_python: RunPython, folder: Path) -> None:
    made = json.loads(exported(run_python, folder, "speedscope", "--at", "end"))

    (profile,) = made["profiles"]
    assert (profile["type"], profile["unit"]) == ("sampled", "bytes")
    assert profile["endValue"] == sum(profile["weights"]) == 1632 * MIB
    assert len(profile["samples"]) == len(profile["weights"])
    used = {at for sample in profile["samples"] for at in sample}
    assert used == set(range(len(made["shared"]["frames"])))
    assert made["shared"]["frames"][0]["name"] == "<module>"
