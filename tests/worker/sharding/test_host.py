"""Tensors of the host that nobody asks for their values."""

from __future__ import annotations

import psutil
import pytest

pytest.importorskip("torch")

import torch

from oomdoctor.worker.sharding.host import unwritten

LARGE = 256 << 20


def test_large_tensors_of_the_host_take_no_memory() -> None:
    process = psutil.Process()
    before = process.memory_info().rss
    with unwritten():
        master = torch.zeros(LARGE // 4)
        gradient = torch.full((LARGE // 2,), 1.0, dtype=torch.bfloat16)
        master.copy_(gradient[: LARGE // 4]).mul_(0.5)
        master.zero_()
        grown = process.memory_info().rss - before

    assert (master.nbytes, gradient.nbytes, gradient.dtype) == (LARGE, LARGE, torch.bfloat16)
    assert grown < LARGE // 8


def test_small_ones_keep_their_values_and_torch_gets_its_functions_back() -> None:
    own = (torch.zeros, torch.full, torch.Tensor.copy_)
    with unwritten():
        small = torch.zeros(3).copy_(torch.full((3,), 2.0)).mul_(2.0)

    assert small.tolist() == [4.0, 4.0, 4.0]
    assert own == (torch.zeros, torch.full, torch.Tensor.copy_)
    assert "copy_" not in vars(torch.Tensor)
