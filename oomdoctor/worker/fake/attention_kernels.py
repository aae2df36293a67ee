"""The forward kernels of attention: their results in the order in which they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.fake.attention_workspaces import CUDNN_BYTES, flash_splits, flash_width
from oomdoctor.worker.fake.layout import contiguous_strides, is_dense

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.worker.fake.memory import FakeMemory
    from oomdoctor.worker.fake.workspaces import Workspaces

SUMS_MULTIPLE = 32  # lengths of efficient attention's sums are rounded up to it
KEPT_WIDTH = 128  # wider results are added up in fp32 in global memory

FLASH = "aten._scaled_dot_product_flash_attention.default"
EFFICIENT = "aten._scaled_dot_product_efficient_attention.default"
CUDNN = "aten._scaled_dot_product_cudnn_attention.default"


class AttentionKernels:
    """The kernels by name, for `Kernels.special`."""

    def __init__(self, memory: FakeMemory, workspaces: Workspaces) -> None:
        """Make results in this memory."""
        self._memory = memory
        self._workspaces = workspaces

    def table(self) -> dict[str, Callable[..., object]]:
        """Return all of them."""
        return {
            "_scaled_dot_product_flash_attention": self.flash,
            "_scaled_dot_product_efficient_attention": self.efficient,
            "_scaled_dot_product_cudnn_attention": self.cudnn,
        }

    def _new(self, size: Sequence[int], dtype: torch.dtype, name: str) -> torch.Tensor:
        return self._memory.new((tuple(size), contiguous_strides(size), dtype), name)

    def _like(self, query: torch.Tensor, width: int, name: str) -> torch.Tensor:
        """Return a result that lies as the query does."""
        batch, heads, length, own_width = query.shape
        if width == own_width and is_dense(query):
            return self._memory.new((tuple(query.shape), query.stride(), query.dtype), name)
        return self._new((batch, length, heads, width), query.dtype, name).transpose(1, 2)

    def flash(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        _value: torch.Tensor,
        dropout: float = 0.0,
        *_arguments: object,
        **_named: object,
    ) -> tuple[Any, ...]:
        """Make result, sums and states; few blocks split the keys and keep partial results."""
        batch, heads, length, width = query.shape
        out = self._like(query, width, FLASH)
        sums = self._new((batch, heads, length), torch.float32, FLASH)
        with self._workspaces.scratch(FLASH) as scratch:
            parts: list[int] = []
            shapes = (batch, heads, length, width), (batch, key.size(1), key.size(2), width)
            splits = 1
            if not dropout:
                splits = flash_splits(*shapes, self._workspaces.card.processors)
            if splits > 1:
                rows = splits * batch * heads * length * 4
                parts = [scratch.take(rows), scratch.take(rows * flash_width(width))]
            state = self._new((2,), torch.uint64, FLASH)
            unused = self._new((), torch.int64, FLASH)
            if dropout:
                state = self._new((2,), torch.uint64, FLASH)
            scratch.give(*parts)
        return out, sums, None, None, length, key.size(2), state, unused, torch.empty(0)

    def efficient(
        self,
        query: torch.Tensor,
        _key: torch.Tensor,
        value: torch.Tensor,
        _bias: torch.Tensor | None,
        wants_sums: bool,
        *_arguments: object,
        **_named: object,
    ) -> tuple[torch.Tensor, ...]:
        """Make result and sums; the state of the random numbers is kept on the host."""
        batch, heads, length, _ = query.shape
        width = value.size(-1)
        out = self._new((batch, length, heads, width), query.dtype, EFFICIENT)
        padded = -(-length // SUMS_MULTIPLE) * SUMS_MULTIPLE if wants_sums else 0
        sums = self._new((batch, heads, padded), torch.float32, EFFICIENT)
        if query.dtype != torch.float32 and width > KEPT_WIDTH:
            with self._workspaces.scratch(EFFICIENT) as scratch:
                scratch.take(out.numel() * 4)
        state = torch.zeros((), dtype=torch.int64, device="cpu")
        return out.transpose(1, 2), sums, state, state.clone()

    def cudnn(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        _bias: torch.Tensor | None,
        wants_sums: bool,
        *_arguments: object,
        **_named: object,
    ) -> tuple[Any, ...]:
        """Make states, result and sums; a single row is split like flash attention's."""
        batch, heads, length, width = query.shape
        seed = self._new((), torch.int64, CUDNN)
        offset = self._new((), torch.int64, CUDNN)
        out = self._like(query, value.size(-1), CUDNN)
        sums = None
        if wants_sums:
            sums = self._new((batch, heads, length, 1), torch.float32, CUDNN)
        with self._workspaces.scratch(CUDNN) as scratch:
            single = batch * heads * (width * 16 + 32) + 128
            scratch.take(single if length == 1 else CUDNN_BYTES)
        if sums is None:
            sums = self._new((0,), torch.float32, CUDNN)
        return out, sums, None, None, length, key.size(2), seed, offset, None
