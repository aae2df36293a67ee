"""Batch and length at which an unmodified program leaves a cap of 1 GiB: found as by a scan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from oomdoctor.cli.bisect_command import CommandTemplate
from oomdoctor.lab.command_trial import CommandBackend
from oomdoctor.model.trial import SearchAnswer, TrialResult, TrialSpec
from oomdoctor.search.axes import axis_named
from oomdoctor.search.edge import find_edge
from oomdoctor.search.rounds import run as search_through
from tests.hang import no_hang
from tests.inject.running import needs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from oomdoctor.search.axes import Axis
    from oomdoctor.search.rounds import Ask

pytestmark = [pytest.mark.slow, needs("torch", "transformers")]
CAP = 1 << 30
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
PROGRAM = """
import argparse
import os

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def train(rows, length, steps):
    config = LlamaConfig(
        vocab_size=8192, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=8192,
    )
    torch.manual_seed(0)
    model = LlamaForCausalLM(config)
    model.train()
    if "RANK" in os.environ:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        ids = torch.randint(0, 8192, (rows, length))
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bs", type=int)
    parser.add_argument("--max_len", type=int)
    given = parser.parse_args()
    if "RANK" in os.environ:
        torch.distributed.init_process_group("gloo")
    train(given.bs, given.max_len, 100)
    print("END")
"""
# goes up value by value in one process, and prints the last that fits
SCAN = """
import gc, json, os, sys

import torch
from oomdoctor.inject.counted import CountedMemory
from program import train

if "RANK" in os.environ:
    torch.distributed.init_process_group("gloo")
cap, axis, other, *values = map(int, sys.argv[1:])
best = None
for value in values:
    gc.collect()
    memory = CountedMemory(torch, cap)
    memory.enter()
    try:
        train(*((value, other) if axis == 0 else (other, value)), 2)
        best = value
    except torch.OutOfMemoryError:
        break
    finally:
        memory.leave()
if os.environ.get("RANK", "0") == "0":
    print("best", json.dumps(best), flush=True)
os._exit(0)
"""


@pytest.fixture(autouse=True)
def _guard() -> Iterator[None]:
    with no_hang(1800):
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "scan.py").write_text(SCAN, encoding="utf-8")
    return tmp_path


def found(
    folder: Path, axis: Axis, fixed: dict[str, int], launcher: tuple[str, ...]
) -> SearchAnswer:
    """Search with real trials of the program."""
    backend = CommandBackend("cpu", folder=folder)
    words = (*launcher, "program.py", "--bs", "{batch}", "--max_len={seq}")
    template = CommandTemplate(words, (), str(folder))

    def trial(ask: Ask) -> TrialResult:
        command = template.at(ask.values)
        spec = TrialSpec(values=ask.values, command=command, cap_bytes=CAP, repeat=ask.repeat)
        return backend.run(spec, lambda _: None)

    return search_through(find_edge(axis, cap_bytes=CAP, fixed=dict(fixed)), trial)


def scanned(
    folder: Path, root: Path, number: int, other: int, values: range, launcher: tuple[str, ...]
) -> int:
    """Try all values, one after the other."""
    done = subprocess.run(
        [*launcher, "scan.py", *map(str, (CAP, number, other, *values))],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=800,
        check=True,
    )
    line = next(one for one in done.stdout.splitlines() if one.startswith("best"))
    return int(json.loads(line.removeprefix("best")))


@pytest.mark.parametrize("launcher", [(sys.executable,), TORCHRUN], ids=["alone", "torchrun"])
@pytest.mark.parametrize(
    ("name", "step", "high", "other"), [("batch", 1, 48, 512), ("seq", 128, 4096, 4)]
)
def test_the_edge_is_that_of_a_scan(
    folder: Path, root: Path, launcher: tuple[str, ...], name: str, step: int, high: int, other: int
) -> None:
    fixed = {"seq": other} if name == "batch" else {"batch": other}

    answer = found(folder, axis_named(name, step, high, step), fixed, launcher)

    bracket = answer.bracket
    best = scanned(folder, root, int(name == "seq"), other, range(step, high + 1, step), launcher)
    assert bracket.fits_at == best
    assert bracket.ooms_at == best + step
    assert bracket.proven
