"""Cards and small jobs for the tests of the fake card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.job import CardSpec
from oomdoctor.worker.fake.card import FakeCard
from oomdoctor.worker.fake.trace import shim

if TYPE_CHECKING:
    from collections.abc import Callable

A100 = CardSpec(name="A100", capability=(8, 0), processors=108, total_bytes=80 << 30)
H100 = CardSpec(name="H100", capability=(9, 0), processors=132, total_bytes=80 << 30)


def sequence(
    run: Callable[..., object], *setup: Callable[[], object], card: CardSpec = A100
) -> list[int]:
    """Return what a function allocates on a card, in order; what it is given is not counted.

    The workspaces that cuBLAS keeps for the two threads are there before.
    """
    import torch

    with FakeCard(card, shim()) as fake:
        square = torch.empty(8, 8, device="cuda", requires_grad=True)
        (square @ square).sum().backward()
        given = [make() for make in setup]
        before = len(fake.tracker.sizes)
        kept = run(*given)
        sizes = fake.tracker.sizes[before:]
        del kept
    return sizes
