"""Strides of tensors: contiguous ones, and whether a tensor's elements leave no gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch


def is_dense(tensor: torch.Tensor) -> bool:
    """Say that a tensor's elements fill its storage without gaps or overlaps, in any order."""
    step = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


def contiguous_strides(size: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides: list[int] = []
    step = 1
    for length in reversed(size):
        strides.append(step)
        step *= max(1, length)
    return tuple(reversed(strides))
