"""Operators as Liger-Kernel's benchmarks call them, and what its kernels allocate around a launch.

Each step is one call with its backward pass on the inputs of the step before: gradients stay, as in
the benchmark, which repeats the call and takes the peak of each. A kernel writes into tensors that
its Python side made: those are made here, the launch itself allocates nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


class LigerCrossEntropy(torch.autograd.Function):
    """Cross entropy whose kernel writes the gradient over the logits."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Make a loss for each row, and keep the logits, which are the gradient by now."""
        losses = torch.zeros(logits.shape[0], dtype=logits.dtype, device=logits.device)
        loss = losses.sum() / target.shape[0]
        ctx.save_for_backward(logits.detach())
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        """Return the kept gradient as it is: the loss is the last of its graph."""
        del grads
        (logits,) = ctx.saved_tensors
        return logits, None


class LigerGeglu(torch.autograd.Function):
    """GELU of the gate times the other, whose backward pass writes over both."""

    @staticmethod
    def forward(ctx: Any, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        """Make the product, and keep both factors."""
        out = torch.empty_like(gate)
        ctx.save_for_backward(gate, up)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        """Return the kept factors, written over."""
        del grads
        return ctx.saved_tensors


class LigerNorm(torch.autograd.Function):
    """Root mean square norm whose backward pass writes over the gradient it gets."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Make the result and a scale for each row."""
        out = torch.empty_like(x)
        scales = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
        ctx.save_for_backward(x, weight, scales)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        """Sum the weight's gradient over as many rows as the input has."""
        x, weight, _ = ctx.saved_tensors
        parts = torch.zeros_like(x, dtype=weight.dtype)
        return grads[0], parts.sum(dim=0).to(weight.dtype)


class Geglu(nn.Module):
    """The inner layers of a Gemma."""

    def __init__(self, hidden: int, inner: int, *, liger: bool) -> None:
        """Make three layers without bias."""
        super().__init__()
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)
        self.liger = liger

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Gate and narrow."""
        if self.liger:
            return self.down_proj(LigerGeglu.apply(self.gate_proj(x), self.up_proj(x)))
        gate = functional.gelu(self.gate_proj(x), approximate="tanh")
        return self.down_proj(gate * self.up_proj(x))


class Norm(nn.Module):
    """The norm of a Llama."""

    def __init__(self, hidden: int, *, liger: bool) -> None:
        """Make the weight."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.liger = liger

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale rows."""
        if self.liger:
            return LigerNorm.apply(x, self.weight)
        wide = x.to(torch.float32)
        variance = wide.pow(2).mean(-1, keepdim=True)
        wide = wide * torch.rsqrt(variance + 1e-6)
        return self.weight * wide.to(x.dtype)


def warm(device: torch.device) -> None:
    """Multiply once in both threads: what was timed before in the same process did so too."""
    one = torch.ones(1, 1, device=device, requires_grad=True)
    (one @ one).backward()


def cross_entropy(
    arguments: Mapping[str, Any], device: torch.device
) -> tuple[None, None, Callable[[], None]]:
    """Return the step of the loss alone, over logits in fp32."""
    rows, vocab = arguments["rows"], arguments["vocab"]
    logits = torch.randn(rows, vocab, device=device, requires_grad=True)
    target = torch.randint(vocab, (rows, 1), device=device).squeeze(1)

    def step() -> None:
        if arguments["liger"]:
            loss = LigerCrossEntropy.apply(logits, target)
        else:
            loss = functional.cross_entropy(logits, target)
        loss.backward()

    return None, None, step


def module(
    arguments: Mapping[str, Any], device: torch.device
) -> tuple[nn.Module, None, Callable[[], None]]:
    """Return the step of a layer on a random input that wants a gradient."""
    dtype = DTYPES[arguments["dtype"]]
    if arguments["layer"] == "geglu":
        warm(device)
    shape = tuple(arguments["shape"])
    if arguments["layer"] == "geglu":
        layer: nn.Module = Geglu(shape[-1], arguments["inner"], liger=arguments["liger"])
    else:
        layer = Norm(shape[-1], liger=arguments["liger"])
    layer = layer.to(device)
    if arguments["layer"] == "geglu":
        layer = layer.to(dtype)
    x = torch.randn(*shape, device=device, dtype=dtype, requires_grad=True)
    dy = torch.randn_like(x) if arguments["given"] else None

    def step() -> None:
        y = layer(x)
        if arguments["backward"]:
            y.backward(torch.randn_like(y) if dy is None else dy, retain_graph=True)

    return layer, None, step
