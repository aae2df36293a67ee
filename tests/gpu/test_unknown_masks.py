"""Rows that a mask selects whose values only a card could compute; of no concern to a real one."""

from __future__ import annotations

import os
from typing import Any

import pytest

if not os.environ.get("OOMDOCTOR_VIRTUAL_NAME"):
    pytest.skip("a real card computes its values", allow_module_level=True)


def test_a_mask_that_nobody_knows_selects_all_rows(torch: Any) -> None:
    scores = torch.randn(64, 32, device="cuda")

    chosen = scores[scores > 0]

    assert chosen.shape == (64 * 32,)
    assert torch.nonzero(scores > 0)[-1].tolist() == [63, 31]


def test_or_the_share_of_them_that_is_stated(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOMDOCTOR_VIRTUAL_ROWS", "0.25")
    scores = torch.randn(64, 32, device="cuda")

    assert torch.nonzero(scores > 0).shape == (512, 2)


def test_a_mask_stands_among_other_indices(torch: Any) -> None:
    scores = torch.randn(64, 32, 4, device="cuda")

    assert scores[scores[..., 0] > 0].shape == (64 * 32, 4)
    assert scores[:, scores[0, :, 0] > 0].shape == (64, 32, 4)
    assert [len(one) for one in torch.nonzero(scores[0] > 0, as_tuple=True)] == [128, 128]


def test_a_mask_that_the_host_sent_is_followed(torch: Any) -> None:
    mask = torch.tensor([True, False, True]).cuda()

    assert torch.arange(3, device="cuda")[mask].shape == (2,)
    assert torch.ones(3, device="cuda").bool().all().item() is True
