"""Operators that are written out: makers of tensors, copies to and from the host, readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.fake.attention_kernels import AttentionKernels
from oomdoctor.worker.fake.convolutions import Convolutions
from oomdoctor.worker.fake.layout import contiguous_strides, is_dense
from oomdoctor.worker.fake.sorting import embedding_backward, nonzero, select_bytes

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
            "native_dropout": self.dropout,
            "index.Tensor": self.index,
            "_index_put_impl_": self.index_put,
            "embedding_dense_backward": self.embedding_backward,
            **Convolutions(self._kernels).table(),
            **AttentionKernels(self._memory, self._kernels.workspaces).table(),
        }

    def empty(
        self,
        size: Sequence[int],
        *,
        dtype: torch.dtype | None = None,
        memory_format: torch.memory_format | None = None,
        **_named: Any,
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
        **_named: Any,
    ) -> torch.Tensor:
        """Return an empty tensor with these strides."""
        geometry = (tuple(size), tuple(stride), dtype or torch.get_default_dtype())
        return self._memory.new(geometry, "aten.empty_strided.default")

    def copy(
        self,
        target: torch.Tensor,
        source: torch.Tensor,
        non_blocking: bool = False,  # noqa: FBT002 - torch passes it by place
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
        if same and target.stride() == source.stride() and is_dense(source):
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

    def dropout(
        self,
        source: torch.Tensor,
        _probability: float,
        _train: bool | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the result and the mask, which is made first."""
        name = "aten.native_dropout.default"
        strides = source.stride() if is_dense(source) else contiguous_strides(source.shape)
        size = tuple(source.shape)
        mask = self._memory.new((size, strides, torch.bool), name)
        return self._memory.new((size, strides, source.dtype), name), mask

    def embedding_backward(self, *arguments: Any) -> torch.Tensor:
        """Return the gradient of an embedding's weights."""
        indices, gradient = arguments[1].contiguous(), arguments[0].contiguous()
        rows = arguments[2]
        arguments = (gradient, indices, *arguments[2:])
        size = (rows, gradient.shape[-1])
        name = "aten.embedding_dense_backward.default"

        def make() -> torch.Tensor:
            return self._memory.new((size, (size[1], 1), gradient.dtype), name)

        workspaces = self._kernels.workspaces
        with workspaces.scratch(name) as scratch:
            call = workspaces.call(name, arguments)
            return embedding_backward(call, scratch, make)

    def nonzero(self, mask: torch.Tensor) -> torch.Tensor:
        """Return the indices of what is not zero."""
        rows = self._values.selected(mask)
        workspaces = self._kernels.workspaces
        name = "aten.nonzero.default"
        with workspaces.scratch(name) as scratch:
            nonzero(scratch, mask.numel(), workspaces.card.capability)
            made = self._found(rows)
            scratch.use(select_bytes(mask.numel(), workspaces.card.capability))
        return made

    def _found(self, rows: torch.Tensor) -> torch.Tensor:
        size = tuple(rows.shape)
        made = self._memory.new((size, (1, max(1, size[0])), torch.int64), "aten.nonzero.default")
        self._values.learn(made, rows)
        return made

    def _places(self, indices: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """Return indices of which masks are replaced by the places of their true elements."""
        places: list[torch.Tensor | None] = []
        for one in indices:
            if one is not None and one.dtype in (torch.bool, torch.uint8):
                found = self.nonzero(one) if one.device.type == "cuda" else one.nonzero()
                places += [found.select(1, column) for column in range(one.dim())]
            else:
                places.append(one)
        return places

    def index(self, tensor: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> object:
        """Return elements by index or by mask."""
        operator = torch.ops.aten.index.Tensor
        return self._kernels.make(operator, (tensor, self._places(indices)), {})

    def index_put(
        self,
        tensor: torch.Tensor,
        indices: Sequence[torch.Tensor | None],
        values: torch.Tensor,
        *arguments: Any,
    ) -> torch.Tensor:
        """Write elements by index or by mask; a number of the host fills what a mask selects."""
        if values.device.type == "cpu" and values.numel() == 1:
            mask = _mask_alone(tensor, indices)
            if mask is not None and not (arguments and arguments[0]):
                return tensor.masked_fill_(mask, values.item())
            if values.dim() == 0:
                values = values.to(tensor.device)
        operator = torch.ops.aten._index_put_impl_.default
        given = (tensor, self._places(indices), values, *arguments)
        self._kernels.memory.name(tensor, str(operator))
        self._kernels.finish(operator, given, {}, tensor)
        return tensor

    def masked_select(self, tensor: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the selected elements in a row."""
        shape = torch.broadcast_shapes(tensor.shape, mask.shape)
        count = self.nonzero(mask.expand(shape)).shape[0]
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


def _mask_alone(
    tensor: torch.Tensor, indices: Sequence[torch.Tensor | None]
) -> torch.Tensor | None:
    """Return the only index where it is a mask, with the tensor's number of dimensions."""
    before, mask = 0, None
    for one in indices:
        if one is None:
            before += mask is None
        elif mask is not None or one.dtype not in (torch.bool, torch.uint8) or not one.is_cuda:
            return None
        else:
            mask = one
    if mask is None:
        return None
    after = tensor.dim() - mask.dim() - before
    index = (..., *(None for _ in range(after)))
    return mask[index]
