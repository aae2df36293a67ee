"""`estimate --engine virtual` says what `--engine simulate` does, by torch's own allocator."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.estimating.choice import Engines, engines
from oomdoctor.estimating.estimate import Wanted, estimate
from oomdoctor.estimating.virtual import SAME
from oomdoctor.model.job import EntrySpec, Job, LoraSpec, ModelSpec, ShardingSpec
from tests.gpu.test_predictions import card_of
from tools.stream_jobs import half, tiny

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from oomdoctor.model.estimate import Estimate

JOBS = {
    "full": Job(model=tiny(), batch=2, seq_len=256),
    "lora, recomputing": half(
        method="lora",
        lora=LoraSpec(rank=8, targets=("q_proj", "v_proj")),
        checkpointing="reentrant",
    ),
    "float32, eager attention": half(dtype="fp32", attention="eager"),
    # a CUDA build times what DDP does, also where it is simulated and there is no driver
    "ranks": half(sharding=ShardingSpec(kind="ddp", ranks=2)),
}
OWN = """
import torch

def make(device, width=512):
    model = torch.nn.Linear(width, width).to(device)
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        model(torch.randn(8, width, device=device)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, optimizer, step
"""


@pytest.fixture(scope="module")
def virtual() -> Iterator[Engines]:
    """Workers on a virtual card of their own, and those that simulate the same jobs."""
    with engines("virtual", python=sys.executable) as made:
        yield made


@pytest.fixture(scope="module")
def simulated() -> Iterator[Engines]:
    """Workers that see no card."""
    with engines("simulate", python=sys.executable) as made:
        yield made


def estimated(torch: Any, job: Job, made: Engines) -> Estimate:
    wanted = Wanted(cards=(card_of(torch),), with_limits=False)
    return made.speak(wanted.cards[0], lambda engine: estimate(job, engine, wanted))


@pytest.mark.parametrize("name", JOBS)
def test_a_run_needs_what_is_simulated(
    torch: Any, virtual: Engines, simulated: Engines, name: str
) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("peft")

    ran, traced = (estimated(torch, JOBS[name], made) for made in (virtual, simulated))

    assert (ran.engine, traced.engine) == ("virtual", "simulate")
    assert ran.peak_phase == traced.peak_phase
    assert SAME in ran.told
    for one, other in zip(ran.phases, traced.phases, strict=True):
        assert one.name == other.name
        assert one.allocated_bytes == pytest.approx(other.allocated_bytes, rel=0.005), one.name
        assert one.reserved_bytes == pytest.approx(other.reserved_bytes, rel=0.005), one.name
    parts = [{one.name: one.bytes for one in made.parts} for made in (ran, traced)]
    assert sum(parts[0].values()) == ran.peak_allocated_bytes
    assert parts[0] == pytest.approx(parts[1], rel=0.005, abs=1 << 20)


def test_the_users_own_code_is_run(torch: Any, virtual: Engines, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    model = ModelSpec(name="own.py:make", config={}, source="the user's own code")
    entry = EntrySpec(place="own.py:make", folder=str(tmp_path), arguments={"width": "1024"})
    job = Job(model=model, framework="torch", entry=entry)

    made = estimated(torch, job, virtual)

    weights = 4 * (1024 * 1024 + 1024)
    assert made.phases[0].allocated_bytes == pytest.approx(weights, rel=0.01)
    assert made.peak_allocated_bytes >= 4 * weights  # with gradients and two states
    assert {one.name for one in made.parts if one.bytes} >= {"weights", "optimizer states"}
