"""Operators that are written out: those that make tensors, copy between card and host, or read values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.worker.fake.kernels import Kernels

READABLE_BYTES = 64 << 10
"""Copies to the host up to this size are filled with zeros; larger ones are left as they are."""


class Special:
    """The operators by name, for `Kernels.special`."""

    def __init__(self, kernels: Kernels) -> None:
        """Work on the memory and the values of these kernels."""
        self._kernels = kernels
        self._memory = kernels.memory
        self._values = kernels.values

    def table(self) -> dict[str, Callable[..., object]]:
        """Return all of them."""
        return {
            "empty.memory_format": self.empty,
            "empty_strided": self.empty_strided,
            "copy_": self.copy,
            "_local_scalar_dense": self._values.item,
            "nonzero": self.nonzero,
            "masked_select": self.masked_select,
            "resize_": self.resize,
            "equal": self.equal,
            "is_pinned": lambda _tensor, _device=None: False,
            "record_stream": lambda _tensor, _stream: None,
        }

    def empty(
        self,
        size: Sequence[int],
        *,
        dtype: torch.dtype | None = None,
        memory_format: torch.memory_format | None = None,
        **_named: Any,  # noqa: ANN401 - layout, device, pin_memory
    ) -> torch.Tensor:
        """Return an empty tensor, contiguous or in a memory format."""
        strides = contiguous_strides(size)
        if memory_format not in (None, torch.contiguous_format, torch.preserve_format):
            twin = torch.empty(size, device="meta", memory_format=memory_format)
            strides = twin.stride()
        geometry = (tuple(size), strides, dtype or torch.get_default_dtype())
        return self._memory.new(geometry, "aten.empty.memory_format")

    def empty_strided(
        self,
        size: Sequence[int],
        stride: Sequence[int],
        *,
        dtype: torch.dtype | None = None,
        **_named: Any,  # noqa: ANN401 - layout, device, pin_memory
    ) -> torch.Tensor:
        """Return an empty tensor with these strides."""
        geometry = (tuple(size), tuple(stride), dtype or torch.get_default_dtype())
        return self._memory.new(geometry, "aten.empty_strided.default")

    def copy(
        self,
        target: torch.Tensor,
        source: torch.Tensor,
        non_blocking: bool = False,  # noqa: FBT001, FBT002 - torch passes it by place
    ) -> torch.Tensor:
        """Copy within the card, from the host, or to it."""
        if target.numel() == 0:
            return target
        if target.device.type == "cuda":
            self._memory.name(target, "aten.copy_.default")
        if target.device != source.device:
            self._stage(target, source, non_blocking=non_blocking)
        known = None if source.device.type == "meta" else self._values.of(source)
        if target.device.type != "cuda":
            if known is not None:
                target.copy_(known)
            elif target.numel() * target.itemsize <= READABLE_BYTES:
                target.zero_()
        elif known is not None and not self._values.blind_to(source):
            self._values.learn(target, known)
        else:
            self._values.lose(target)
        return target

    def _stage(self, target: torch.Tensor, source: torch.Tensor, *, non_blocking: bool) -> None:
        """Take the contiguous copies on the card that a copy between devices needs."""
        same = target.dtype == source.dtype
        if same and target.is_contiguous() and source.is_contiguous():
            return
        converts_on = "cuda" if non_blocking else "cpu"
        if source.device.type == converts_on:
            needs_target = not target.is_contiguous()
            kind = target.dtype
        else:
            needs_target = not (target.is_contiguous() and same)
            kind = source.dtype
        if needs_target and target.device.type == "cuda":
            torch.empty_like(target, dtype=kind, memory_format=torch.contiguous_format)
        if source.device.type == "cuda":
            if source.device.type == converts_on:
                source = source.to(target.dtype)
            source.expand_as(target).contiguous()

    def nonzero(self, mask: torch.Tensor) -> torch.Tensor:
        """Return the indices of what is not zero."""
        rows = self._values.selected(mask)
        size = tuple(rows.shape)
        made = self._memory.new((size, (1, max(1, size[0])), torch.int64), "aten.nonzero.default")
        self._values.learn(made, rows)
        return made

    def masked_select(self, tensor: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the selected elements in a row."""
        shape = torch.broadcast_shapes(tensor.shape, mask.shape)
        count = self._values.selected(mask.expand(shape)).shape[0]
        return self._memory.new(((count,), (1,), tensor.dtype), "aten.masked_select.default")

    def resize(
        self, tensor: torch.Tensor, size: Sequence[int], *, memory_format: object = None
    ) -> torch.Tensor:
        """Give a tensor another size; a storage that is too small is replaced."""
        del memory_format
        count = 1
        for length in size:
            count *= length
        needed = (tensor.storage_offset() + count) * tensor.itemsize
        if needed <= tensor.untyped_storage().nbytes():
            return tensor.as_strided_(size, contiguous_strides(size))
        fresh = self.empty(size, dtype=tensor.dtype)
        return tensor.set_(fresh)

    def equal(self, left: torch.Tensor, right: torch.Tensor) -> bool:
        """Compare two tensors: unknown ones are taken for different."""
        known = self._values.of(left), self._values.of(right)
        return known[0] is not None and known[1] is not None and torch.equal(known[0], known[1])


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
