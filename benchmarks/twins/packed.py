"""A frozen 4-bit layer as bitsandbytes 0.41.1 holds it and multiplies with it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

BLOCK = 64
STEP_ROWS = 256


class Packed(nn.Module):
    """Packed values and a scale for each 64 of them."""

    def __init__(self, rows: int, columns: int, *, bias: bool, double: bool) -> None:
        """Quantise as it is made: from the weight in its dtype by way of fp16."""
        super().__init__()
        blocks = rows * columns // BLOCK
        self.shape, self.double = (columns, rows), double
        whole = torch.empty(self.shape).half()
        scales = torch.empty(blocks, dtype=torch.float32)
        self.register_buffer("weight", torch.empty((rows * columns + 1) // 2, 1, dtype=torch.uint8))
        del whole
        if double:
            many = (blocks + STEP_ROWS - 1) // STEP_ROWS
            self.register_buffer("scales_of_scales", torch.empty(many, dtype=torch.float32))
            scales = torch.empty(blocks, dtype=torch.uint8)
        self.register_buffer("scales", scales)
        self.bias = nn.Parameter(torch.empty(columns), requires_grad=False) if bias else None

    def unpacked(self) -> torch.Tensor:
        """Return the weight in fp16, as its state remembers the dtype it was quantised from."""
        if self.double:
            scales = torch.empty(self.scales.shape, dtype=torch.float32, device=self.scales.device)
            scales = scales + 1.0
        return torch.empty(self.shape, dtype=torch.float16, device=self.weight.device)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply; one row without a gradient takes the kernel that needs no whole weight."""
        if x.numel() == x.shape[-1] and not x.requires_grad:
            out = torch.empty((*x.shape[:-1], self.shape[0]), dtype=x.dtype, device=x.device)
            return out if self.bias is None else out + self.bias
        result: torch.Tensor = Unpacking.apply(x, self, self.bias)
        return result


class Unpacking(torch.autograd.Function):
    """The product with a packed weight."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, layer: Packed, bias: torch.Tensor | None) -> Any:
        """Dequantise, cast, multiply, and keep the input."""
        ctx.layer, ctx.kept = layer, x if ctx.needs_input_grad[0] else None
        return functional.linear(x, layer.unpacked().to(x.dtype), bias)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        """Dequantise again for the gradient of the input."""
        grad = grads[0]
        return torch.matmul(grad, ctx.layer.unpacked().to(grad.dtype)), None, None
