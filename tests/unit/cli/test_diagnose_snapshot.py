"""`oomdoctor diagnose --snapshot`: what a snapshot shows decides between causes."""

from __future__ import annotations

import gzip
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.cli.main import run
from oomdoctor.cli.options import is_snapshot
from oomdoctor.memory.allocator_oom import OutOfMemoryError
from oomdoctor.snapshot.report import report_on
from oomdoctor.snapshot.shapes import snapshot_of
from oomdoctor.units import format_size
from tests.unit.snapshot.planted import (
    GIB,
    MIB,
    MODEL,
    SCRIPT,
    SETUP,
    Recorded,
    layer,
    leak,
    train,
)

if TYPE_CHECKING:
    from pathlib import Path


def message(plain: dict[str, Any], requested: int | None = None) -> str:
    """Return what PyTorch prints of the failed request."""
    (device,) = report_on(snapshot_of(plain), try_settings=False).devices
    found = device.fragmentation
    assert found is not None
    unused = found.reserved_bytes - found.allocated_bytes
    asked, live = format_size(requested or device.failed_bytes or 0), found.allocated_bytes
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total"
        f" capacity of {format_size(found.reserved_bytes + 400 * MIB)} of which 10.00 MiB is free."
        f" Of the allocated memory {format_size(live)} is allocated by PyTorch, and"
        f" {format_size(unused)} is reserved by PyTorch but unallocated.\n"
    )


def kept_graph(run: Recorded, step: int) -> None:
    """Keep what four lines of the forward pass make in every step."""
    del step
    for at in range(4):
        run.alloc(24 * MIB, layer(50 + at))


def pinned() -> Recorded:
    """Return a run that asks for more than a hole of its many segments."""
    run = Recorded(capacity=200 * MIB)
    blocks = [run.alloc(5 * MIB, layer()) for _ in range(40)]
    run.free(*(block for at, block in enumerate(blocks) if at % 4))
    with pytest.raises(OutOfMemoryError):
        run.alloc(18 * MIB, layer())
    return run


RUNS = {
    "python-list-holds-gpu-tensors": lambda: train(
        Recorded(capacity=4 * GIB), extra=leak(64 * MIB)
    ),
    "loss-graph-retained": lambda: train(Recorded(capacity=5 * GIB), extra=kept_graph),
    "fragmentation": pinned,
    "batch-or-seq-too-large": lambda: train(Recorded(capacity=2 * GIB), length=lambda _: 20_000),
    "optimizer-states": lambda: train(Recorded(capacity=1700 * MIB)),
}
NEAR = {"batch-or-seq-too-large": ("no-grad-checkpointing",)}  # one need, two remedies


def written(folder: Path, plain: dict[str, Any], name: str = "oom.pickle") -> str:
    path = folder / name
    path.write_bytes(pickle.dumps(plain, protocol=4))
    return str(path)


def diagnosed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code = run(["diagnose", *arguments, "--format", "json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code in (0, 4)
    return found


@pytest.mark.parametrize("cause", RUNS)
def test_a_snapshot_alone_shows_the_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cause: str
) -> None:
    path = written(tmp_path, RUNS[cause]().snapshot())

    told = diagnosed(capsys, path)

    assert told["causes"][0]["cause"] in (cause, *NEAR.get(cause, ()))
    assert told["facts"]["oom.seen"]["value"] is True
    assert [one["kind"] for one in told["artifacts"]] == ["memory-snapshot"]


@pytest.mark.parametrize(
    ("cause", "made"),
    [
        ("python-list-holds-gpu-tensors", RUNS["python-list-holds-gpu-tensors"]),
        ("fragmentation", pinned),
    ],
)
def test_a_snapshot_decides_what_the_message_leaves_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cause: str, made: Any
) -> None:
    log = tmp_path / "crash.log"
    plain = made().snapshot()
    log.write_text(message(plain), encoding="utf-8")
    path = written(tmp_path, plain)

    alone = diagnosed(capsys, str(log))
    told = diagnosed(capsys, str(log), "--snapshot", path)

    def share(found: dict[str, Any]) -> float:
        return max(
            (one["probability"] for one in found["causes"] if one["cause"] == cause), default=0.0
        )

    assert told["causes"][0]["cause"] == cause
    assert share(alone) < 0.9 < share(told)
    assert told["facts"]["torch.allocated"]["origin"] == "stated"


def test_the_line_that_leaks_is_quoted_from_the_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, RUNS["python-list-holds-gpu-tensors"]().snapshot())

    facts = diagnosed(capsys, path)["facts"]

    assert facts["snapshot.leak_frame"]["value"] == f"{SCRIPT}:22 main"
    assert facts["snapshot.leak_per_step"]["value"] == 64 * MIB
    assert facts["snapshot.leak_graph"]["value"] is False
    assert facts["snapshot.leak_share"]["value"] > 0.1
    (quote,) = facts["snapshot.leak_frame"]["quotes"]
    assert quote["artifact"] == path
    assert quote["text"] == f"{SCRIPT}:22 in main keeps 64.00 MiB more in a step"


def test_shares_and_the_failed_request_are_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, RUNS["batch-or-seq-too-large"]().snapshot())

    facts = diagnosed(capsys, path)["facts"]

    assert facts["oom.requested"]["value"] == 20_000 * 16 << 10
    assert facts["trace.user_frame"]["value"].startswith(f"{MODEL}:")
    assert facts["run.phase"]["value"] == "forward"
    assert facts["snapshot.activation_share"]["value"] > 0.5
    assert facts["snapshot.optimizer_share"]["value"] == 0.0
    assert facts["snapshot.fragmented"]["value"] is False
    assert facts["torch.awaiting_free"]["value"] == 0


def test_a_run_without_a_leak_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, train(Recorded(), length=lambda step: 128 + 32 * step).snapshot())

    facts = diagnosed(capsys, "--snapshot", path)["facts"]

    assert facts["snapshot.leak_share"]["value"] == 0.0
    assert "growth.monotone" not in facts
    assert "oom.seen" not in facts


def test_a_snapshot_of_another_failure_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "crash.log"
    plain = pinned().snapshot()
    log.write_text(message(plain, 3 * GIB), encoding="utf-8")
    path = written(tmp_path, plain)

    notes = diagnosed(capsys, str(log), path)["notes"]

    assert any("18.00 MiB, the log's 3.00 GiB" in note for note in notes)


def test_a_snapshot_without_anything_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, {"segments": [], "device_traces": []})

    notes = diagnosed(capsys, "--snapshot", path)["notes"]

    assert any("neither events nor blocks" in note for note in notes)


@pytest.mark.parametrize(
    ("data", "is_one"),
    [
        (pickle.dumps({"segments": []}, protocol=4), True),
        (pickle.dumps({"device_traces": [], "segments": []}, protocol=2), True),
        (b'  {"segments": []}', True),
        (gzip.compress(pickle.dumps({"segments": []}, protocol=4), mtime=0), True),
        (b'{"event": "the segments of a log"}', False),
        (gzip.compress(b"a log that was packed\n", mtime=0), False),
        (b"\x1f\x8bdamaged", False),
        (b"step 3 segments\n", False),
        (b"", False),
    ],
)
def test_a_snapshot_is_known_by_how_it_begins(tmp_path: Path, data: bytes, *, is_one: bool) -> None:
    path = tmp_path / "input"
    path.write_bytes(data)

    assert is_snapshot(str(path)) == is_one
    assert not is_snapshot(str(tmp_path))


def test_weights_alone_are_no_user_of_a_leak(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Recorded(capacity=1 * GIB)
    for _ in range(16):
        made.alloc(64 * MIB, SETUP)
    with pytest.raises(OutOfMemoryError):
        made.alloc(64 * MIB, SETUP)

    told = diagnosed(capsys, written(tmp_path, made.snapshot()))

    assert "snapshot.leak_share" not in told["facts"]
    assert told["facts"]["snapshot.fragmented"]["value"] is False
