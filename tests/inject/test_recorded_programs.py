"""Recorded programs with torch: what is told of their steps, and that they run as ever."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.hang import no_hang
from tests.inject import programs
from tests.inject.recorded import start
from tests.inject.running import needs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs("torch")]
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
COMPILED = """
import pickle
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, rows):
        return self.layer(rows).relu()

net, linear = Net(), torch.nn.Linear(4, 4)
rows = torch.ones(1, 4)
for _ in range(6):
    linear(rows)
    net(rows)

@torch.compile(fullgraph=True, backend="eager")
def step(rows):
    return net(linear(rows)).sum()

step(rows)
torch.compile(net, fullgraph=True, backend="eager")(rows)
graph = torch.fx.symbolic_trace(torch.nn.Sequential(linear, torch.nn.ReLU()))
print([node.op for node in graph.graph.nodes])
pickle.loads(pickle.dumps(torch.save))
print(type(pickle.loads(pickle.dumps(net))).__name__)
"""


@pytest.fixture(autouse=True)
def _guard() -> Iterator[None]:
    with no_hang(400):
        yield


def test_a_plain_loop_tells_its_steps_and_phases(tmp_path: Path) -> None:
    program = programs.EVALUATES.replace("range(100)", "range(10)")

    plain = start(tmp_path, program, recorded=False)
    recorded = start(tmp_path, program)

    assert (recorded.code, recorded.stdout) == (plain.code, plain.stdout)
    assert recorded.stderr == plain.stderr
    assert [one["number"] for one in recorded.told("step")] == list(range(1, 11))
    assert all(one["rss_bytes"] > 0 for one in recorded.told("step"))
    assert [one["phase"] for one in recorded.told("phase")][:5] == [
        "load",
        "train step",
        "evaluation",
        "save",
        "evaluation",
    ]
    assert recorded.told("fault") == []
    assert recorded.told("exit")[0]["number"] == 10


def test_tokens_and_the_longest_row_are_told(tmp_path: Path) -> None:
    recorded = start(tmp_path, programs.LOOP, "4", "32")

    first = recorded.told("step")[0]
    assert (first["tokens"], first["longest"]) == (4 * 32, 32)
    assert sum(one.get("steps", 1) for one in recorded.told("step")) == 50


def test_what_is_compiled_traced_or_pickled_is_so_as_ever(tmp_path: Path) -> None:
    plain = start(tmp_path, COMPILED, recorded=False)
    recorded = start(tmp_path, COMPILED)

    assert recorded.code == 0, recorded.stderr
    assert recorded.stdout == plain.stdout


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_loader_leave_nothing(tmp_path: Path, method: str) -> None:
    recorded = start(tmp_path, programs.WORKERS.replace("range(1000)", "range(40)"), method)

    assert recorded.stdout.endswith("END\n")
    told = [messages for messages in recorded.processes.values() if len(messages) > 2]
    assert len(told) == 1


def test_each_rank_tells_for_itself(tmp_path: Path) -> None:
    program = programs.DDP.replace("range(50)", "range(5)")

    recorded = start(tmp_path, program, "2", launcher=TORCHRUN)

    assert recorded.code == 0, recorded.stderr
    ranks = {one["rank"] for one in recorded.told("step")}
    assert ranks == {0, 1}


@needs("transformers", "accelerate")
def test_a_trainer_tells_its_arguments(tmp_path: Path) -> None:
    program = programs.TRAINER.replace("max_steps=100", "max_steps=3, eval_strategy='epoch'")

    recorded = start(tmp_path, program)

    assert recorded.code == 0, recorded.stderr
    assert "is_gradient_checkpointing" not in recorded.stderr
    (path,) = recorded.run.glob("processes/*/arguments.json")
    assert '"gradient_accumulation_steps": 2' in path.read_text(encoding="utf-8")
    assert [one["number"] for one in recorded.told("step")] == [1, 2, 3]
    assert "evaluation" in {one["phase"] for one in recorded.told("phase")}
