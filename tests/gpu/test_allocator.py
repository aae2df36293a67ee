"""Our model of the allocator against torch's own, on a device."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.snapshot.reading import read_snapshot
from oomdoctor.snapshot.replay import verify

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


def use_memory(torch: Any, *, seed: int) -> list[Any]:
    """Allocate and free at random, and return what is left."""
    dice = random.Random(seed)  # noqa: S311 - made-up operations
    kept: list[Any] = []
    for _ in range(400):
        if kept and dice.random() < 0.48:
            del kept[dice.randrange(len(kept))]
        else:
            size = int(2 ** dice.uniform(3, 25))
            kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    return kept


@pytest.mark.parametrize("seed", range(3))
def test_a_snapshot_replays_with_every_address_equal(torch: Any, tmp_path: Path, seed: int) -> None:
    torch.cuda.memory._record_memory_history(max_entries=100_000)

    kept = use_memory(torch, seed=seed)
    torch.cuda.memory._dump_snapshot(str(tmp_path / "snapshot.pickle"))

    replay = verify(read_snapshot(str(tmp_path / "snapshot.pickle")))
    assert len(kept) > 0
    assert replay.equal
    assert (replay.allocations, replay.faults) == (replay.same_address, 0)


def test_a_training_step_replays_with_every_address_equal(torch: Any, tmp_path: Path) -> None:
    layers = torch.nn.Sequential(
        torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)
    ).cuda()
    optimizer = torch.optim.AdamW(layers.parameters())
    torch.cuda.memory._record_memory_history(max_entries=100_000)

    for _ in range(3):
        layers(torch.randn(64, 512, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.memory._dump_snapshot(str(tmp_path / "snapshot.pickle"))

    replay = verify(read_snapshot(str(tmp_path / "snapshot.pickle")))
    assert replay.equal
    assert replay.allocations > 50


def test_weights_gradients_and_states_are_what_the_formula_says(torch: Any) -> None:
    layer = torch.nn.Linear(1024, 1024, bias=False)
    weight = 1024 * 1024 * 4
    before = torch.cuda.memory_allocated()
    layer = layer.cuda()
    optimizer = torch.optim.AdamW(layer.parameters())

    layer(torch.zeros(1, 1024, device="cuda")).sum().backward()
    with_gradient = torch.cuda.memory_allocated() - before
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    with_states = torch.cuda.memory_allocated() - before

    # cuBLAS keeps a workspace for good; it is the same before and after the step
    workspace = with_gradient - 2 * weight
    assert 0 <= workspace <= 64 * MIB
    assert 3 * weight <= with_states - workspace <= 3 * weight + MIB
