"""Liger's kernels: what liger-kernel 0.8.5 allocates for its fused linear cross-entropy.

Chunks of tokens are as many as the vocabulary is wider than the hidden state, and the gradients are
ready when forward ends: `grad_input` of the hidden states, `grad_weight` where the output layer
trains, one buffer of a chunk's logits. Its SwiGLU and RMSNorm keep inputs instead of what they
computed from them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch import nn


class FusedLinearLoss(torch.autograd.Function):
    """Cross-entropy of hidden states; forward makes the gradients."""

    @staticmethod
    def forward(
        ctx: Any, hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor
    ) -> torch.Tensor:
        """Compute loss and gradients chunk by chunk."""
        tokens, width = hidden.shape
        size = chunk_tokens(tokens, width, weight.shape[0])
        for_hidden = torch.zeros_like(hidden)
        for_weight = torch.zeros_like(weight) if weight.requires_grad else None
        losses = hidden.new_zeros(tokens, dtype=torch.float32)
        (targets != -100).sum().item()
        buffer = _buffer(hidden, weight, size)
        for start in range(0, tokens, size):
            rows = hidden[start : start + size]
            if buffer is None:
                logits = rows @ weight.t()
            else:
                logits = buffer[: rows.shape[0]]
                torch.mm(rows, weight.t(), out=logits)
            losses[start : start + size] = losses[start : start + size]
            _gradients(logits, rows, weight, for_hidden[start : start + size], for_weight)
            del logits
        ctx.save_for_backward(for_hidden, for_weight)
        return torch.sum(losses)

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return what forward computed, scaled in place."""
        for_hidden, for_weight = ctx.saved_tensors
        return for_hidden, for_weight, None


def chunk_tokens(tokens: int, width: int, words: int) -> int:
    """Return the tokens of one chunk: a power of two, at most all of them."""
    factor = -(-words // width)
    wanted = -(-tokens // factor)
    return min(1 << (wanted - 1).bit_length(), tokens)


def _buffer(hidden: torch.Tensor, weight: torch.Tensor, size: int) -> torch.Tensor | None:
    """Return the buffer of a chunk's logits, or None where autocast decides about their dtype."""
    kind = hidden.device.type
    casts = torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) != hidden.dtype
    if kind != "cuda" or casts or hidden.dtype != weight.dtype:
        return None
    return hidden.new_empty((size, weight.shape[0]))


def _gradients(
    logits: torch.Tensor,
    rows: torch.Tensor,
    weight: torch.Tensor,
    for_rows: torch.Tensor,
    for_weight: torch.Tensor | None,
) -> None:
    """Multiply the gradient of a chunk's logits, which stands where the logits stood."""
    if logits.dtype == for_rows.dtype == weight.dtype:
        torch.mm(logits, weight, out=for_rows)
    else:
        for_rows.copy_(logits @ weight)
    if for_weight is None:
        return
    if logits.dtype == rows.dtype == for_weight.dtype:
        torch.addmm(for_weight, logits.t(), rows, out=for_weight)
    else:
        for_weight.add_(torch.mm(logits.t(), rows.to(logits.dtype)).to(for_weight.dtype))


class GatedSilu(torch.autograd.Function):
    """silu(gate) * up, of which gate and up are kept; backward writes over them."""

    @staticmethod
    def forward(ctx: Any, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        """Return the product."""
        ctx.save_for_backward(gate, up)
        return torch.empty_like(gate).copy_(gate)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradients in the memory of the inputs."""
        gate, up = ctx.saved_tensors
        gradient.contiguous()
        return gate, up


class FusedNorm(torch.autograd.Function):
    """RMSNorm that keeps its input and one number for each token."""

    @staticmethod
    def forward(ctx: Any, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Return the normalised input."""
        flat = hidden.view(-1, hidden.shape[-1])
        scales = hidden.new_empty(flat.shape[0], dtype=torch.float32)
        ctx.save_for_backward(flat, weight, scales)
        return torch.empty_like(flat).copy_(flat).view(hidden.shape)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the gradient in the memory of the one that came in."""
        _, weight, _ = ctx.saved_tensors
        if not ctx.needs_input_grad[1]:
            return gradient, None
        partials = gradient.new_empty((_processors(gradient), weight.shape[0]), dtype=torch.float32)
        return gradient, partials.sum(dim=0).to(weight.dtype)


def _processors(like: torch.Tensor) -> int:
    if like.device.type != "cuda":
        return 1
    return int(torch.cuda.get_device_properties(like.device).multi_processor_count)


def fuse_layers(model: nn.Module) -> None:
    """Let the gated layers and norms of a model run as Liger's do."""
    for module in model.modules():
        kind = type(module).__name__
        if kind.endswith("RMSNorm") and hasattr(module, "weight"):
            module.forward = partial(_norm, module)
        elif kind.endswith("MLP") and all(
            hasattr(module, name) for name in ("gate_proj", "up_proj", "down_proj")
        ):
            module.forward = partial(_gated, module)


def _norm(module: Any, hidden: torch.Tensor) -> torch.Tensor:
    return FusedNorm.apply(hidden, module.weight)


def _gated(module: Any, hidden: torch.Tensor) -> torch.Tensor:
    return module.down_proj(GatedSilu.apply(module.gate_proj(hidden), module.up_proj(hidden)))
