"""What stands for values that only a card could compute; of no concern to a real one."""

from __future__ import annotations

import os
from typing import Any

import pytest

if not os.environ.get("OOMDOCTOR_VIRTUAL_NAME"):
    pytest.skip("a real card computes its values", allow_module_level=True)


@pytest.fixture(autouse=True)
def _follows_values(torch: Any) -> None:
    """A virtual card follows values with torch 2.9 and later."""
    if os.environ.get("OOMDOCTOR_VIRTUAL_NAME") and not hasattr(torch.library, "get_kernel"):
        pytest.skip("this torch lets no operator be followed")


@pytest.mark.parametrize("shape", [(64,), (4, 1024, 1024)])
def test_nothing_is_nan_or_infinite(torch: Any, shape: tuple[int, ...]) -> None:
    values = torch.randn(*shape, device="cuda")

    assert torch.nonzero(torch.isnan(values)).shape == (0, len(shape))
    assert values[torch.isinf(values)].shape == (0,)
    assert torch.isfinite(values).all().item() is True
    assert torch.isnan(values).any().item() is False


def test_sampled_tokens_are_no_special_ones_and_known(torch: Any) -> None:
    likely = torch.softmax(torch.randn(3, 1000, device="cuda"), -1)

    assert torch.argmax(likely, dim=-1).tolist() == [500, 500, 500]
    assert torch.multinomial(likely, 2).tolist() == [[500, 501]] * 3


def test_tokens_are_routed_to_all_experts_alike(torch: Any) -> None:
    scores = torch.randn(4096, 8, device="cuda")

    _, experts = torch.topk(scores, 2, dim=-1)

    counts = torch.nn.functional.one_hot(experts, 8).sum(dim=(0, 1))
    assert counts.tolist() == [1024] * 8
    assert len(set(experts[0].tolist())) == 2


def test_sizes_that_follow_from_values_are_the_largest(torch: Any) -> None:
    values = torch.randn(64, device="cuda").long()

    assert torch.unique(values).shape == (64,)
    assert torch.repeat_interleave(values).shape == (64,)


def test_a_gradient_scaler_goes_on(torch: Any) -> None:
    layer = torch.nn.Linear(8, 8).cuda()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler()

    for _ in range(3):
        scaler.scale(layer(torch.randn(4, 8, device="cuda")).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    assert scaler.get_scale() == 65536
