"""Real trials on counted tensors of the CPU: every edge is the one that a scan finds."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import clean_environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]
SCRIPT = """\
import argparse
import os

import torch
from torch.nn.functional import cross_entropy

parser = argparse.ArgumentParser()
parser.add_argument("--bs", type=int, default=4)
parser.add_argument("--len", type=int, default=256)
asked = parser.parse_args()
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Embedding(1000, 32), torch.nn.Linear(32, 16384))
if "RANK" in os.environ:
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(1000):
    rows = torch.randint(1000, (asked.bs, asked.len))
    logits = model(rows)
    cross_entropy(logits.flatten(0, 1), rows.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "vocab_size": 16384,
    "intermediate_size": 64,
    "max_position_embeddings": 4096,
}
CPU = ("--backend", "cpu", "--cap", "1GiB")
TWO_RANKS = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
JOB = ("--model", "config.json", "--method", "full", "--engine", "formula")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    return tmp_path


def bisect(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "oomdoctor", "bisect", *CPU, *words],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        check=False,
    )


def found(folder: Path, axis: str, *words: str) -> dict[str, Any]:
    done = bisect(folder, "--axis", axis, "-f", "json", *words)
    assert done.returncode == 0, done.stderr.decode()
    values: dict[str, Any] = json.loads(done.stdout)
    return values


def scanned(folder: Path, name: str, values: range, *words: str) -> tuple[int, int]:
    """Return the largest value that fits and the smallest that does not, each value tried."""
    codes = {
        value: bisect(folder, "--git-bisect", "--axis", f"{name}={value}", *words).returncode
        for value in values
    }
    assert set(codes.values()) == {0, 1}, codes
    fits = max(value for value, code in codes.items() if code == 0)
    fails = min(value for value, code in codes.items() if code == 1)
    assert fits < fails
    return fits, fails


def edge(values: dict[str, Any]) -> tuple[int, int]:
    bracket = values["answer"]["bracket"]
    assert bracket["proven"]
    return int(bracket["fits_at"]), int(bracket["ooms_at"])


@pytest.mark.parametrize(
    ("name", "wide", "values", "more"),
    [
        ("batch", "batch=1..64", range(17, 24), ("--seq", "256")),
        ("seq", "seq=64..4096:64", range(1088, 1473, 64), ("--batch", "4")),
    ],
    ids=["batch", "seq"],
)
def test_a_job_ends_where_a_scan_does(
    folder: Path, name: str, wide: str, values: range, more: tuple[str, ...]
) -> None:
    made = found(folder, wide, *JOB, *more)

    assert edge(made) == scanned(folder, name, values, *JOB, *more)
    assert made["backend"] == "cpu"
    assert sum(one["outcome"] == "oom" for one in made["trials"]) <= 2


@pytest.mark.parametrize(
    ("name", "wide", "values", "flag"),
    [
        ("batch", "batch=1..64", range(12, 19), "--bs"),
        ("seq", "seq=64..4096:64", range(832, 1153, 64), "--len"),
    ],
    ids=["batch", "seq"],
)
def test_an_unmodified_script_ends_where_a_scan_does(
    folder: Path, name: str, wide: str, values: range, flag: str
) -> None:
    command = ("--", sys.executable, "train.py", flag, f"{{{name}}}")

    assert edge(found(folder, wide, *command)) == scanned(folder, name, values, *command)


def test_two_ranks_end_where_a_scan_does(folder: Path) -> None:
    command = ("--", *TWO_RANKS, "train.py", "--bs", "{batch}")

    made = found(folder, "batch=1..64", *command)

    assert edge(made) == scanned(folder, "batch", range(14, 18), *command)
    assert {one["ranks"] for one in made["trials"]} == {2}
    failed = [one for one in made["trials"] if one["outcome"] == "oom"]
    assert all(one["rank"] in (0, 1) for one in failed)


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray")
def test_a_local_ray_ends_where_one_place_does(folder: Path) -> None:
    command = ("--", sys.executable, "train.py", "--bs", "{batch}")

    by_ray = found(folder, "batch=1..64", "--executor", "ray", *command)

    assert edge(by_ray) == edge(found(folder, "batch=1..64", *command))
    assert (by_ray["executor"], by_ray["width"] >= 1) == ("ray", True)
