"""What autocast leaves of the saving of a projected optimizer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import llama
from tests.proofs.weighing import size

torch = pytest.importorskip("torch")


@proves("galore-mixed-precision")
@pytest.mark.parametrize(("pure", "expected"), [(False, 8), (True, 4)])
def test_autocast_keeps_weights_and_gradients_in_fp32(*, pure: bool, expected: int) -> None:
    """Under bf16 autocast weights and gradients stay fp32, 8 bytes per parameter against 4 pure."""
    model: Any = llama()
    model = model.to(torch.bfloat16) if pure else model
    ids = torch.full((1, 4), 5)
    with torch.autocast("cpu", torch.bfloat16, enabled=not pure):
        model(ids, labels=ids).loss.backward()
    held = size([*model.parameters(), *(p.grad for p in model.parameters())])
    assert held == expected * sum(p.numel() for p in model.parameters())
