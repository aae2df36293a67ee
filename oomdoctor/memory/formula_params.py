"""The weights of a network by module: names, sizes, which train, which are quantised.

Layers are equal, so that one layer's weights stand for all of their kind.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.facts.derive_lint_memory import at_least
from oomdoctor.memory.formula_gather import FP32, KINDS, TRAINERS
from oomdoctor.memory.tape import Param
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.memory.formula_shape import Shape
    from oomdoctor.model.job import Job, LoraSpec

WIDTHS = {"fp32": 4, "bf16": 2, "fp16": 2}
_CHOICE = {  # PEFT's own targets where none are given (utils/constants.py of 0.21)
    "fused": ("query_key_value", "c_attn", "qkv_proj"),
    "plain": ("q_proj", "v_proj"),
}
_ALIASES = {
    "q_proj": ("query", "q", "q_lin", "to_q", "query_proj"),
    "k_proj": ("key", "k", "k_lin", "to_k", "key_proj"),
    "v_proj": ("value", "v", "v_lin", "to_v", "value_proj"),
    "o_proj": ("out_proj", "dense", "o", "c_proj", "out_lin", "attn_out", "output_proj"),
    "qkv_proj": ("query_key_value", "c_attn", "Wqkv", "W_pack"),
    "gate_proj": ("w1", "wi_0", "gate"),
    "up_proj": ("w3", "wi_1", "fc1", "c_fc", "dense_h_to_4h", "fc_in", "wi", "intermediate.dense"),
    "down_proj": ("w2", "wo", "fc2", "dense_4h_to_h", "fc_out", "output.dense"),
    "gate_up_proj": (),
}


def packs_plain_alone(job: Job) -> bool:
    """Say that only torch's own linear layers are packed: bitsandbytes under transformers 5.

    There experts are two tensors of a layer, and Falcon's linear layers a class of its own.
    """
    known = job.quant is not None and job.quant.kind in ("nf4", "fp4", "int8")
    return known and at_least(job.versions.get("transformers", "5"), (5,))


class Linear(NamedTuple):
    """A linear layer with its bias and adapter."""

    name: str
    inputs: int
    outputs: int
    weight: Param
    bias: Param | None = None
    down: Param | None = None
    up: Param | None = None


COPY = ".copy"
"""What the name of a trained copy of a weight ends with (`modules_to_save`)."""
_PARTS = ("self_attn", "mlp", "attention", "attn")


class Maker:
    """Makes the weights of a job: their width, whether they train, what quantises them."""

    def __init__(self, job: Job) -> None:
        """Read the job."""
        self.job = job
        self.width = WIDTHS[job.dtype]
        self.trains = job.lora is None and job.trains
        prepared = job.quant is not None and job.quant.prepared
        self.rest = 4 if prepared else self.width
        cast = job.sharding.kind in ("zero1", "zero2")  # DeepSpeed casts all that trains
        wide = job.lora is not None and job.lora.fp32 and not cast
        self.adapter_width = FP32 if wide else self.width
        self.narrows = job.amp is not None and job.sharding.kind in KINDS
        self.widens = self.narrows and job.framework in TRAINERS
        self.params: list[Param] = []
        self.bases: dict[str, Param] = {}

    def weight(self, name: str, count: int, *, linear: bool = False) -> Param:
        """Return a weight; a linear one of a quantised base is packed."""
        packed = linear and self.job.quant is not None and not self._left_wide(name)
        width = self.width if packed else self.rest
        if self._saved(name):  # PEFT trains a copy, and keeps the weight
            self.bases[name] = self._made(name, count, width, trains=False, quantised=packed)
            return self._made(f"{name}{COPY}", count, self.rest, trains=True)
        return self._made(name, count, width, trains=self.trains, quantised=packed)

    def _made(
        self, name: str, count: int, width: int, *, trains: bool, quantised: bool = False
    ) -> Param:
        """Return a weight; FSDP gathers in 16 bits, and trainers keep what trains in fp32 there."""
        stored = FP32 if self.widens and trains else width
        if self.job.sharding.kind == "zero3":  # DeepSpeed gathers as wide as a module was made
            stored = min(stored, self.width)
        width = 2 if self.narrows else width
        made = Param(name, count, width, trains=trains, quantised=quantised, stored=stored)
        self.params.append(made)
        return made

    def unpack(self, weight: Param) -> None:
        """Let a weight be none of those that are quantised."""
        if weight.quantised:
            weight.quantised = False
            weight.stored = self.rest
            weight.width = 2 if self.narrows else self.rest

    def _left_wide(self, name: str) -> bool:
        """Say that bitsandbytes leaves a weight as it is: one of no plain linear layer."""
        own = ".experts." in name or self.job.model.config.get("model_type") == "falcon"
        return own and packs_plain_alone(self.job)

    def _saved(self, name: str) -> bool:
        lora = self.job.lora
        last = name.rpartition(".")[2]
        return lora is not None and self.job.trains and last in lora.modules_to_save

    def norm(self, name: str, count: int) -> Param:
        """Return the weight of a norm."""
        return self.weight(name, count)

    def linear(
        self, name: str, inputs: int, outputs: int, *, bias: bool = False, layer: int | None = None
    ) -> Linear:
        """Return a linear layer, with an adapter where the job puts one on it."""
        weight = self.weight(name, inputs * outputs, linear=True)
        extra = self.weight(f"{name}.bias", outputs) if bias else None
        lora = self.job.lora
        if lora is None or not targeted(lora, name, fused="qkv" in name):
            return Linear(name, inputs, outputs, weight, extra)
        if layer is not None and lora.layers and layer not in lora.layers:
            return Linear(name, inputs, outputs, weight, extra)
        trains = self.job.trains
        rank, width = lora.rank, self.adapter_width
        down = self._made(f"{name}.lora_A", rank * inputs, width, trains=trains)
        up = self._made(f"{name}.lora_B", rank * outputs, width, trains=trains)
        if lora.dora:
            self._made(f"{name}.magnitude", outputs, width, trains=trains)
        return Linear(name, inputs, outputs, weight, extra, down, up)


def targeted(lora: LoraSpec, name: str, *, fused: bool) -> bool:
    """Say whether an adapter stands on the linear of this name (its last part)."""
    last = name.rpartition(".")[2]
    if last in ("lm_head", "router", "score"):
        return last in lora.targets
    if lora.targets == ("all-linear",):
        return True
    if not lora.targets:
        return last in (_CHOICE["fused"] if fused else _CHOICE["plain"])
    names = (last, *_ALIASES.get(last, ()))
    for target in lora.targets:
        ends = target.rpartition(".")[2]
        if target in names or ends in names:
            return True
        if any(mark in target for mark in "*|\\^$+?(") and _matches(target, name, names):
            return True
    return False


def _matches(pattern: str, name: str, names: tuple[str, ...]) -> bool:
    """Say whether a pattern is that of a whole path, as PEFT asks; a broken one matches nothing."""
    layer = name.rpartition(".")[0]
    paths = (f"model.{layer}.{part}.{one}" for part in _PARTS for one in names)
    try:
        return any(re.fullmatch(pattern, path) is not None for path in paths)
    except re.error:
        return False


class Attention(NamedTuple):
    """The weights of one attention."""

    q: Linear | None
    k: Linear | None
    v: Linear | None
    fused: Linear | None
    out: Linear
    q_norm: Param | None = None
    k_norm: Param | None = None
    query_down: Linear | None = None
    key_down: Linear | None = None
    latent_norms: tuple[Param, ...] = ()


class Feed(NamedTuple):
    """The weights of one feed-forward part."""

    gate: Linear | None
    up: Linear | None
    fused: Linear | None
    down: Linear
    router: Linear | None = None
    expert_up: Param | None = None
    expert_down: Param | None = None
    shared: Feed | None = None


class Layer(NamedTuple):
    """The weights of one layer."""

    norms: tuple[Param, ...]
    attention: Attention
    feed: Feed
    cross: Attention | None = None


def attention(maker: Maker, shape: Shape, prefix: str, layer: int | None = None) -> Attention:
    """Return the weights of an attention."""
    hidden, queries, keys = shape.hidden, shape.queries, shape.keys
    if shape.key_rank:
        return _latent(maker, shape, prefix, layer)
    one = shape.qkv_bias
    q_norm = k_norm = None
    if shape.qk_norm:
        each = shape.qk_norm == "head"
        q_norm = maker.norm(f"{prefix}.q_norm", shape.head_dim if each else queries)
        k_norm = maker.norm(f"{prefix}.k_norm", shape.head_dim if each else keys)
    out = maker.linear(f"{prefix}.o_proj", queries, hidden, bias=shape.bias, layer=layer)
    if shape.fused_qkv:
        fused = maker.linear(
            f"{prefix}.qkv_proj", hidden, queries + 2 * keys, bias=one, layer=layer
        )
        return Attention(None, None, None, fused, out, q_norm, k_norm)
    q = maker.linear(f"{prefix}.q_proj", hidden, queries, bias=one, layer=layer)
    k = maker.linear(f"{prefix}.k_proj", hidden, keys, bias=one, layer=layer)
    v = maker.linear(f"{prefix}.v_proj", hidden, keys, bias=one, layer=layer)
    return Attention(q, k, v, None, out, q_norm, k_norm)


def _latent(maker: Maker, shape: Shape, prefix: str, layer: int | None) -> Attention:
    """Return the weights of attention through latents (DeepSeek)."""
    hidden, rank = shape.hidden, shape.key_rank
    norms = [maker.norm(f"{prefix}.kv_a_layernorm", rank)]
    query_down = None
    inputs = hidden
    if shape.query_rank:
        query_down = maker.linear(f"{prefix}.q_a_proj", hidden, shape.query_rank, layer=layer)
        norms.append(maker.norm(f"{prefix}.q_a_layernorm", shape.query_rank))
        inputs = shape.query_rank
    q = maker.linear(f"{prefix}.q_proj", inputs, shape.queries, layer=layer)
    key_down = maker.linear(f"{prefix}.kv_a_proj", hidden, rank + shape.rope_dim, layer=layer)
    plain = shape.head_dim - shape.rope_dim + shape.value_dim
    kv = maker.linear(f"{prefix}.kv_b_proj", rank, shape.heads * plain, layer=layer)
    out = maker.linear(f"{prefix}.o_proj", shape.heads * shape.value_dim, hidden, layer=layer)
    return Attention(q, kv, None, None, out, None, None, query_down, key_down, tuple(norms))


def feed(maker: Maker, shape: Shape, prefix: str, width: int, layer: int | None = None) -> Feed:
    """Return the weights of a plain or gated feed-forward part."""
    hidden, bias = shape.hidden, shape.bias
    down = maker.linear(f"{prefix}.down_proj", width, hidden, bias=bias, layer=layer)
    if not shape.gated:
        up = maker.linear(f"{prefix}.up_proj", hidden, width, bias=bias, layer=layer)
        return Feed(None, up, None, down)
    if shape.fused_gate:
        return Feed(None, None, maker.linear(f"{prefix}.gate_up_proj", hidden, 2 * width), down)
    gate = maker.linear(f"{prefix}.gate_proj", hidden, width, bias=bias, layer=layer)
    up = maker.linear(f"{prefix}.up_proj", hidden, width, bias=bias, layer=layer)
    return Feed(gate, up, None, down)


def experts(maker: Maker, shape: Shape, prefix: str) -> Feed:
    """Return the weights of a mixture of experts: two tensors for all of them, and a router."""
    hidden, width, number = shape.hidden, shape.expert_width, shape.experts
    router = maker.linear(f"{prefix}.router", hidden, number)
    up = maker.weight(f"{prefix}.experts.gate_up_proj", number * hidden * 2 * width, linear=True)
    down = maker.weight(f"{prefix}.experts.down_proj", number * width * hidden, linear=True)
    unused = Linear(f"{prefix}.experts", width, hidden, down)
    shared = (
        feed(maker, shape, f"{prefix}.shared", shape.shared_width) if shape.shared_width else None
    )
    return Feed(None, None, None, unused, router, up, down, shared)


def layer(
    maker: Maker,
    shape: Shape,
    index: int,
    *,
    mixed: bool,
    cross: bool = False,
    stack: str = "layers",
) -> Layer:
    """Return the weights of one layer; `mixed` says that its feed-forward part has experts."""
    prefix = f"{stack}.{index}"
    per = shape.hidden * (2 if shape.norm == "layer" else 1)
    number = 1 if shape.one_norm else 2 * (shape.first_norms + shape.post_norms)
    number += cross
    norms = tuple(maker.norm(f"{prefix}.norm{one}", per) for one in range(max(1, number)))
    return Layer(
        norms,
        attention(maker, shape, f"{prefix}.self_attn", index),
        experts(maker, shape, f"{prefix}.mlp")
        if mixed
        else feed(maker, shape, f"{prefix}.mlp", shape.width, index),
        attention(maker, shape, f"{prefix}.cross_attn", index) if cross else None,
    )
