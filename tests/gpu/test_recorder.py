"""Programs that run out of memory of a card are diagnosed from the bundle that a run left.

They are programs of their own, which know nothing of a recorder, and size themselves by the card.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "fixtures" / "recorded"
CAUSES = {
    "activations": {"batch-or-seq-too-large", "no-grad-checkpointing"},
    "logits": {"logits-vocab-fp32"},
    "optimizer_states": {"optimizer-states"},
    "eval_accumulation": {"eval-predictions-accumulate"},
    "kept_graph": {"loss-graph-retained", "retain-graph"},
    "list_of_tensors": {"python-list-holds-gpu-tensors"},
    "fragmentation": {"fragmentation"},
    "memory_fraction": {"memory-fraction-cap"},
    "load_held_twice": {"load-checkpoint-held-twice"},
    "long_sample": {"activation-peak-at-edge"},
}
STEPS = {"kept_graph": 20, "list_of_tensors": 20, "long_sample": 14, "eval_accumulation": 5}
NEEDS = {"activations", "logits", "eval_accumulation", "long_sample"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the runs of all programs."""
    return tmp_path_factory.mktemp("runs")


def recorded(folder: Path, name: str) -> Path:
    """Run a program under the recorder, as anybody would; return its bundle."""
    command = [sys.executable, str(PROGRAMS / f"{name}.py")]
    done = subprocess.run(
        [sys.executable, "-m", "oomdoctor", "run", "--folder", str(folder), "--", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": _path(), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=570,
        check=False,
    )
    assert done.returncode == 1, done.stderr[-3000:]
    assert "OutOfMemoryError" in done.stderr
    (bundle,) = folder.glob(f"*-{name}")
    return bundle


def _path() -> str:
    """Return the path of this checkout, before what the virtual card needs."""
    return os.pathsep.join((str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])))


def read(path: Path) -> Any:
    """Return a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CAUSES)
def test_the_cause_is_named_from_the_bundle(torch: Any, folder: Path, name: str) -> None:
    del torch
    if name in NEEDS:
        pytest.importorskip("transformers")

    bundle = recorded(folder, name)

    told = read(bundle / "run.json")
    assert told["outcome"] == "out-of-device-memory"
    diagnosis = read(bundle / "diagnosis.json")
    assert diagnosis["causes"][0]["cause"] in CAUSES[name], diagnosis["headline"]
    (process,) = (bundle / "processes").iterdir()
    events = [json.loads(line) for line in (process / "events.jsonl").read_text().splitlines()]
    steps = [one["number"] for one in events if one["type"] == "step"]
    assert max(steps, default=0) >= STEPS.get(name, 0)
    dumped = {path.name for path in (process / "oom-1").iterdir()}
    assert dumped >= {"event.json", "snapshot.pickle", "memory_summary.txt", "memory_stats.json"}
    event = read(process / "oom-1" / "event.json")
    assert event["requested_bytes"] > event["free_bytes"] or name == "memory_fraction"


def test_what_a_program_sees_of_its_peaks_is_its_own(torch: Any, tmp_path: Path) -> None:
    del torch
    program = """
import torch

layer = torch.nn.Linear(256, 256, device="cuda")
optimizer = torch.optim.SGD(layer.parameters())
torch.cuda.reset_peak_memory_stats()
big = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
del big
for step in range(4):
    layer(torch.ones(4, 256, device="cuda")).sum().backward()
    optimizer.step()
print(torch.cuda.max_memory_allocated() >= 64 << 20)
torch.cuda.reset_peak_memory_stats()
print(torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated())
torch.cuda.memory._record_memory_history(max_entries=100)
torch.empty(1 << 20, device="cuda")
found = torch.cuda.memory._snapshot()
print(0 < sum(len(one) for one in found["device_traces"]) <= 100)
try:
    torch.empty(1 << 50, device="cuda")
except torch.OutOfMemoryError:
    print("caught")
"""
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    options = ("run", "-q", "--folder", "runs", "--no-diagnosis")

    done = subprocess.run(
        [sys.executable, "-m", "oomdoctor", *options, "--", sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": _path()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.stdout.splitlines() == ["True", "True", "True", "caught"], done.stderr[-2000:]
    (path,) = tmp_path.glob("runs/*/processes/*/events.jsonl")
    told = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [one["type"] for one in told if one["type"] in ("oom", "fault")] == ["oom"]
    steps = [one for one in told if one["type"] == "step"]
    assert steps[0]["peak_allocated_bytes"] >= 64 << 20
    assert all(one["peak_allocated_bytes"] < 64 << 20 for one in steps[1:])
