"""A decoder as LitGPT of October 2023 has it.

What decides the memory, as its code at that time has it:

- query, key and value are one projection; LoRA of query and value is a grouped convolution whose
  result is written into a tensor of the projection's full width;
- rotary embedding and its concatenations make copies of query and key, grouped key and value are
  expanded to all heads before attention;
- the head is applied to chunks of 128 tokens, Fabric turns what the model returns into fp32, and
  the loss is taken chunk by chunk;
- a 4-bit layer of bitsandbytes 0.41 dequantises to fp16, casts that to the input's dtype, and keeps
  its input for the backward pass although the weight is frozen.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import torch
from torch import nn
from torch.nn import functional

from benchmarks.twins.packed import Packed

CHUNK = 128
Turn: TypeAlias = "tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]"


class Shape(NamedTuple):
    """The dimensions of a model, by LitGPT's padded vocabulary."""

    layers: int
    heads: int
    hidden: int
    inner: int
    vocab: int
    context: int
    groups: int
    head: int
    rotary: float = 1.0
    parallel: bool = False
    shared_norm: bool = False
    bias: bool = False
    head_bias: bool = False
    gated: bool = False
    rms: bool = False


SHAPES = {
    "phi-1_5": Shape(
        *(24, 32, 2048, 8192, 51200, 2048, 32, 64, 0.5),
        parallel=True,
        shared_norm=True,
        bias=True,
        head_bias=True,
    ),
    "stablelm-base-alpha-3b": Shape(
        *(16, 32, 4096, 16384, 50688, 4096, 32, 128, 0.25), parallel=True, bias=True
    ),
    "Llama-2-7b-hf": Shape(*(32, 32, 4096, 11008, 32000, 4096, 32, 128), gated=True, rms=True),
    "Llama-2-13b-hf": Shape(*(40, 40, 5120, 13824, 32000, 4096, 40, 128), gated=True, rms=True),
    "Llama-2-70b-hf": Shape(*(80, 64, 8192, 28672, 32000, 4096, 8, 128), gated=True, rms=True),
    "CodeLlama-34b-hf": Shape(*(48, 64, 8192, 22016, 32000, 16384, 8, 128), gated=True, rms=True),
    "falcon-7b": Shape(*(32, 71, 4544, 18176, 65024, 2048, 1, 64), parallel=True, shared_norm=True),
    "falcon-40b": Shape(*(60, 128, 8192, 32768, 65024, 2048, 8, 64), parallel=True),
}


class Scale(nn.Module):
    """Root mean square norm, in fp32 inside."""

    def __init__(self, size: int) -> None:
        """Make the weight."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale rows to a root mean square of one."""
        wide = x.float()
        mean = torch.mean(wide * wide, dim=-1, keepdim=True)
        return (self.weight * (wide * torch.rsqrt(mean + 1e-5))).to(x.dtype)


def linear(rows: int, columns: int, *, bias: bool, quant: str | None) -> nn.Module:
    """Return a layer, packed where the job quantises."""
    if quant is None:
        return nn.Linear(rows, columns, bias=bias)
    return Packed(rows, columns, bias=bias, double=quant.endswith("-dq"))


class Projection(nn.Module):
    """Query, key and value in one layer, with LoRA on query and value."""

    def __init__(self, shape: Shape, rank: int, quant: str | None) -> None:
        """Make the layer and its adapter."""
        super().__init__()
        self.groups, self.rank = shape.groups == shape.heads, rank
        self.wide = (shape.heads + 2 * shape.groups) * shape.head
        self.parts = (shape.heads * shape.head, shape.groups * shape.head)
        self.linear = linear(shape.hidden, self.wide, bias=shape.bias, quant=quant)
        if rank:
            self.dropout = nn.Dropout(0.05)
            self.lora_a = nn.Parameter(torch.zeros(2 * rank, shape.hidden))
            self.lora_b = nn.Parameter(torch.zeros(sum(self.parts), rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add what the adapter says, padded to the full width."""
        base: torch.Tensor = self.linear(x)
        if not self.rank:
            return base
        low = functional.linear(self.dropout(x), self.lora_a).transpose(-2, -1)
        weight = self.lora_b.unsqueeze(-1)
        if self.groups:
            high = functional.conv1d(low, weight, groups=2)
        else:
            halves = zip(low.chunk(2, dim=1), weight.split(self.parts), strict=True)
            high = torch.cat([functional.conv1d(one, own) for one, own in halves], dim=1)
        return base + self.padded(high.transpose(-2, -1)) * 2.0

    def padded(self, x: torch.Tensor) -> torch.Tensor:
        """Write the columns of query and value into zeros of the full width."""
        x = x.transpose(0, 1)
        result = x.new_zeros((*x.shape[:-1], self.wide)).view(-1, self.wide)
        columns = torch.zeros(sum(self.parts), dtype=torch.long, device=x.device)
        result = result.index_copy(1, columns, x.reshape(-1, sum(self.parts)))
        return result.view((*x.shape[:-1], self.wide)).transpose(0, 1)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn halves of heads by their position."""
    half = x.size(-1) // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return ((x * cos) + (turned * sin)).to(x.dtype)


class Attention(nn.Module):
    """Causal attention, with a cache of fixed length while generating."""

    def __init__(self, shape: Shape, rank: int, quant: str | None) -> None:
        """Make the layers."""
        super().__init__()
        self.shape = shape
        self.attn = Projection(shape, rank, quant)
        self.proj = linear(shape.heads * shape.head, shape.hidden, bias=shape.bias, quant=quant)
        self.cache: tuple[torch.Tensor, torch.Tensor] | None = None

    def forward(self, x: torch.Tensor, turn: Turn, where: torch.Tensor | None) -> torch.Tensor:
        """Attend; `where` are the positions while generating."""
        shape = self.shape
        batch, length, _ = x.shape
        each = shape.heads // shape.groups
        qkv = self.attn(x).view(batch, length, shape.groups, each + 2, shape.head)
        q, k, v = qkv.permute(0, 2, 3, 1, 4).split((each, 1, 1), dim=2)
        if shape.groups != shape.heads and (where is None or shape.groups != 1):
            k = k.expand(batch, shape.groups, each, length, shape.head)
            v = v.expand(batch, shape.groups, each, length, shape.head)
        q, k, v = (one.reshape(batch, -1, length, shape.head) for one in (q, k, v))
        cos, sin, mask = turn
        turns = cos.size(-1)
        q_turned = rotated(q[..., :turns], cos, sin)
        k_turned = rotated(k[..., :turns], cos, sin)
        q = torch.cat((q_turned, q[..., turns:]), dim=-1)
        k = torch.cat((k_turned, k[..., turns:]), dim=-1)
        if where is not None and self.cache is not None:
            k = self.cache[0].index_copy_(2, where, k)
            v = self.cache[1].index_copy_(2, where, v)
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        return self.proj(y.transpose(1, 2).reshape(batch, length, -1))


class Inner(nn.Module):
    """The layers between: gated as in Llama, or plain with GELU."""

    def __init__(self, shape: Shape, quant: str | None) -> None:
        """Make the layers."""
        super().__init__()
        sizes = (shape.hidden, shape.inner)
        self.fc = linear(*sizes, bias=shape.bias, quant=quant)
        self.gate = linear(*sizes, bias=shape.bias, quant=quant) if shape.gated else None
        self.proj = linear(*reversed(sizes), bias=shape.bias, quant=quant)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Widen, activate, narrow."""
        first = self.fc(x)
        if self.gate is None:
            return self.proj(functional.gelu(first))
        second = self.gate(x)
        return self.proj(functional.silu(first) * second)


class Block(nn.Module):
    """One layer."""

    def __init__(self, shape: Shape, rank: int, quant: str | None) -> None:
        """Make the parts."""
        super().__init__()
        norm = Scale if shape.rms else nn.LayerNorm
        self.shape = shape
        self.norm_1 = norm(shape.hidden)
        self.attn = Attention(shape, rank, quant)
        self.norm_2 = None if shape.shared_norm else norm(shape.hidden)
        self.mlp = Inner(shape, quant)

    def forward(self, x: torch.Tensor, turn: Turn, where: torch.Tensor | None) -> torch.Tensor:
        """Run attention and the inner layers, side by side or one after the other."""
        first = self.norm_1(x)
        h = self.attn(first, turn, where)
        if self.shape.parallel:
            second = first if self.norm_2 is None else self.norm_2(x)
            return self.mlp(second) + h + x
        x = h + x
        return self.mlp(self.norm_2(x)) + x


class Decoder(nn.Module):
    """The whole model."""

    def __init__(self, shape: Shape, rank: int, quant: str | None) -> None:
        """Make the layers in LitGPT's order: the head first."""
        super().__init__()
        self.shape = shape
        norm = Scale if shape.rms else nn.LayerNorm
        self.lm_head = linear(shape.hidden, shape.vocab, bias=shape.head_bias, quant=quant)
        self.wte = nn.Embedding(shape.vocab, shape.hidden)
        self.h = nn.ModuleList(Block(shape, rank, quant) for _ in range(shape.layers))
        self.ln_f = norm(shape.hidden)
        self.turn(shape.context)
        self.mask: torch.Tensor | None = None

    def turn(self, length: int) -> None:
        """Make the rotary table for a length."""
        size = int(self.shape.rotary * self.shape.head)
        table = torch.empty(length, size)
        self.register_buffer("cos", torch.cos(table), persistent=False)
        self.register_buffer("sin", torch.sin(table), persistent=False)

    def caches(self, length: int, batch: int) -> None:
        """Make key and value caches of a fixed length, and the mask that they need."""
        shape = self.shape
        heads = 1 if shape.groups == 1 else shape.heads
        size = (batch, heads, length, shape.head)
        for block in self.h:
            block.attn.cache = (torch.zeros(size), torch.zeros(size))
        self.mask = torch.ones(1, 1, length, length, dtype=torch.bool)

    def forward(self, ids: torch.Tensor, where: torch.Tensor | None = None) -> list[torch.Tensor]:
        """Return logits in chunks while training, in one piece else."""
        length = ids.size(1)
        if where is None:
            turn = (self.cos[:length], self.sin[:length], None)
        else:
            cos, sin = self.cos.index_select(0, where), self.sin.index_select(0, where)
            turn = (cos, sin, self.mask.index_select(2, where))
        x = self.wte(ids)
        for block in self.h:
            x = block(x, turn, where)
        x = self.ln_f(x)
        if where is None:
            return [self.lm_head(one).float() for one in x.split(CHUNK, dim=1)]
        return [self.lm_head(x).float()]
