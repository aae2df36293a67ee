"""What cuDNN takes for a convolution, by rule and by a table of what it answered.

Its kernels for tensor cores want channels last and padded to 16 bytes: a workspace holds such
copies of input, weight and result. What else they take (split sums of a weight's gradient, above
all) hangs on the kernel that cuDNN's heuristics choose. `convolutions.json` has the workspaces
that cuDNN 9 itself named, without a card, for the layers of ResNet, ConvNeXt, ViT and of
diffusion models, where they differ from the rule: dtype, batch, channels, side, filters, side of
a filter, stride, padding, groups -> forward, backward of the input, backward of the weight.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.worker.fake.kernels import Kernels

TABLE = Path(__file__).with_suffix(".json")
ALIGNED = 16  # bytes to which channels are padded; as many align the workspace
ASSUMED = "cuDNN's workspaces of convolutions follow a rule where their shapes are not in our table"
FORWARD, INPUT, WEIGHT = range(3)


class Convolutions:
    """The operators of convolutions, for `Kernels.special`."""

    def __init__(self, kernels: Kernels) -> None:
        """Account to the workspaces of these kernels."""
        self._kernels = kernels

    def table(self) -> dict[str, Callable[..., object]]:
        """Return them by name."""
        return {"convolution": self.forward, "convolution_backward": self.backward}

    def _take(self, which: int, shape: _Shape) -> None:
        workspaces = self._kernels.workspaces
        size, known = shape.bytes(which, workspaces.card.capability[0])
        if not known:
            workspaces.unknown.setdefault(ASSUMED)
        if size:
            with workspaces.scratch("aten.convolution.default") as scratch:
                scratch.use(size)

    def forward(
        self, source: torch.Tensor, weight: torch.Tensor, bias: Any, *how: Any, **named: Any
    ) -> object:
        """Return the result of a convolution."""
        layout = _layout(source, weight)
        source = source.contiguous(memory_format=layout)
        weight = weight.contiguous(memory_format=layout)
        operator = torch.ops.aten.convolution.default
        made: Any = self._kernels.make(operator, (source, weight, bias, *how), named)
        self._take(FORWARD, _Shape(source, weight, made, how))
        return made

    def backward(
        self,
        gradient: torch.Tensor,
        source: torch.Tensor,
        weight: torch.Tensor,
        _bias: Any,
        *given: Any,
    ) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients that are asked for, in the order in which torch makes them."""
        how, wanted = given[:-1], given[-1]
        layout = _layout(source, weight)
        shape = _Shape(source, weight, gradient, how)
        made: list[torch.Tensor | None] = [None, None, None]
        for which, like in ((INPUT, source), (WEIGHT, weight)):
            if wanted[which - 1]:
                whole = gradient.contiguous(memory_format=layout)
                made[which - 1] = torch.empty_like(like, memory_format=layout)
                self._take(which, shape)
                del whole
        if wanted[2]:
            made[2] = gradient.sum([place for place in range(gradient.dim()) if place != 1])
        return tuple(made)


def _layout(source: torch.Tensor, weight: torch.Tensor) -> torch.memory_format:
    """Return the layout that cuDNN is given: channels last where one of both has it."""
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(source.dim())
    for one in (source, weight):
        if last is not None and one.is_contiguous(memory_format=last) and not one.is_contiguous():
            return last
    return torch.contiguous_format


class _Shape:
    """One convolution: what its workspaces hang on."""

    def __init__(
        self, source: torch.Tensor, weight: torch.Tensor, result: torch.Tensor, how: Sequence[Any]
    ) -> None:
        stride, padding, _dilation, transposed, _more, groups = how
        self._tensors = source, weight, result
        self._groups = groups
        self._narrow = source.itemsize < 4
        self._last = _layout(source, weight) != torch.contiguous_format
        sides = {*source.shape[2:]}, {*weight.shape[2:]}, {*stride}, {*padding}
        self._key = ""
        if source.dim() == 4 and not transposed and all(len(one) == 1 for one in sides):
            batch, channels, side, _ = source.shape
            values = [batch, channels, side, weight.shape[0], weight.shape[2]]
            values += [stride[0], padding[0], *([groups] if groups > 1 else [])]
            self._key = " ".join(["b" if self._narrow else "f", *map(str, values)])

    def bytes(self, which: int, major: int) -> tuple[int, bool]:
        """Return a workspace and whether cuDNN itself has named it."""
        if self._last:
            return 0, False  # what comes as kernels want it needs no copies
        known = _known()["90" if major >= 9 else "80"].get(self._key)
        return (self._rule(which), False) if known is None else (known[which], True)

    def _rule(self, which: int) -> int:
        if self._groups > 1:
            return 0
        source, weight, result = self._tensors
        copies = [_padded(source, 1), _padded(result, 1)]
        if not self._narrow or weight[0, 0].numel() > 1:
            copies.append(_padded(weight, 0, 1))
        if which == FORWARD and not self._narrow:
            del copies[1]
        return sum(copies) + ALIGNED


def _padded(tensor: torch.Tensor, *places: int) -> int:
    """Return the bytes of a tensor with its channels padded."""
    step = ALIGNED // tensor.itemsize
    size = tensor.itemsize
    for place, length in enumerate(tensor.shape):
        size *= -(-length // step) * step if place in places else length
    return size


@cache
def _known() -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return found
