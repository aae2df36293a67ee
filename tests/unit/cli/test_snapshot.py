"""`oomdoctor snapshot verify` on snapshots that the model itself wrote."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

from oomdoctor.cli.main import run
from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_snapshot import snapshot
from oomdoctor.memory.allocator_trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MIB = 1 << 20


def recorded() -> dict[str, Any]:
    cache = Allocator(trace=Trace())
    first = cache.alloc(3 * MIB)
    cache.alloc(30 * MIB)
    cache.free(first)
    return snapshot(cache)


def written(folder: Path, plain: dict[str, Any]) -> str:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(plain, protocol=4))
    return str(path)


def test_an_equal_replay_is_told_in_a_few_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["snapshot", "verify", written(tmp_path, recorded())])

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[:3] == [
        "allocations: 2 of 2 at the same address",
        "segment events: 2 of 2 the same",
        "peak: 33.00 MiB allocated, 50.00 MiB reserved",
    ]


def test_json_has_the_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["snapshot", "verify", written(tmp_path, recorded()), "--format", "json"])

    told = json.loads(capsys.readouterr().out)
    assert told["events_per_second"] > 0
    assert {name: told[name] for name in told if name.startswith(("alloc", "same", "segment"))} == {
        "allocations": 2,
        "same_address": 2,
        "segment_events": 2,
        "same_segment_events": 2,
    }


def test_a_difference_is_named_and_exits_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = recorded()
    plain["device_traces"][0][-3]["addr"] += 512

    code = run(["snapshot", "verify", written(tmp_path, plain)])

    assert code == 1
    assert "first difference: event 3 of device 0 (30.00 MiB)" in capsys.readouterr().out


def test_a_hostile_file_is_an_input_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(b"cos\nsystem\n(S'true'\ntR.")

    code = run(["snapshot", "verify", str(path)])

    assert code == 2
    assert "instruction GLOBAL at byte 0" in capsys.readouterr().err
