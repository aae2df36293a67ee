"""One layer's forward on the tape, in the order in which transformers writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.formula_gather import KINDS
from oomdoctor.memory.tape_attention import Way, attend, rotate
from oomdoctor.memory.tape_ops import (
    FP32,
    add,
    cast,
    dropout,
    layer_norm,
    linear,
    multiply,
    pointwise,
    rms_norm,
    scale,
    split,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.memory.formula_params import Attention, Feed, Layer, Linear
    from oomdoctor.memory.formula_shape import Shape
    from oomdoctor.memory.tape import Block, Handed, Param, Tape, Value
    from oomdoctor.model.job import Job


class Runner:
    """Runs layers of one shape on one tape for one job."""

    def __init__(self, tape: Tape, job: Job, shape: Shape, *, batch: int, tokens: int) -> None:
        """Keep what every layer needs."""
        self.tape = tape
        self.job = job
        self.shape = shape
        self.batch = batch
        self.tokens = tokens
        trains = job.trains
        self.drop = shape.dropout if trains else 0.0
        self.attention_drop = shape.attention_dropout if trains else 0.0
        narrow = job.amp is not None and job.sharding.kind in KINDS
        self.rope_width = 2 if narrow or job.dtype != "fp32" else FP32
        self.liger = job.loss == "fused" and job.framework not in ("trl", "unsloth")

    def linear(self, x: Value, made: Linear) -> Value:
        """Multiply, and add what an adapter adds."""
        tape, lora = self.tape, self.job.lora
        base = linear(tape, x, made.weight, made.outputs, bias=made.bias)
        if made.down is None or made.up is None or lora is None:
            return base
        width = base.width
        if made.weight.quantised:  # PEFT clones what bitsandbytes returns
            base = scale(tape, base)
        if tape.autocast is None or not made.weight.quantised:
            x = cast(tape, x, made.down.width)
        if lora.dropout and self.job.trains:
            x = dropout(tape, x, lora.dropout)
        low = linear(tape, x, made.down, lora.rank)
        high = linear(tape, low, made.up, made.outputs)
        del low, x
        if lora.dora:
            base, high = self._magnitude(base, high, made)
        added = scale(tape, high)
        del high
        if made.weight.quantised:
            added = cast(tape, added, width)
        total = add(tape, base, added)
        del base, added
        return cast(tape, total, width)

    def _magnitude(self, base: Value, high: Value, made: Linear) -> tuple[Value, Value]:
        """Compute DoRA's norm of the merged weight, and scale both results by it."""
        tape, whole = self.tape, made.inputs * made.outputs
        eye = tape.block(made.inputs * made.inputs * FP32)
        merged = [tape.block(whole * FP32) for _ in range(3)]
        del eye, merged
        return self._scaled(base), self._scaled(high)

    def _scaled(self, x: Value) -> Value:
        """Multiply with a trained row: the value itself is saved."""
        tape, source, size = self.tape, x.node, x.size

        def back(grad: Block) -> Sequence[Handed]:
            del grad
            passing = tape.block(size)
            given = ((source, tape.block(size)),)
            del passing
            return given

        y = tape.value(x.rows, x.cols, x.width)
        return tape.node(y, [x], back, [x.block], trains=True)

    def norm(self, x: Value, weight: Param) -> Value:
        """Normalise in the family's way; Liger's kernel keeps its input alone."""
        if self.shape.norm == "layer" or self.liger:
            return layer_norm(self.tape, x, weight)
        return rms_norm(self.tape, x, weight, way=self.shape.norm)

    def attention(self, x: Value, made: Attention, context: Value | None = None) -> Value:
        """Project, rotate, attend, project back; `context` gives keys of another sequence."""
        tape, shape = self.tape, self.shape
        if made.key_down is not None:
            return self._latent(x, made)
        other = x if context is None else context
        if made.fused is not None:
            widths = (shape.queries, shape.keys, shape.keys)
            q, k, v = split(tape, self.linear(x, made.fused), widths)
        else:
            q = self.linear(x, _there(made.q))
            k = self.linear(other, _there(made.k))
            v = self.linear(other, _there(made.v))
        if made.q_norm is not None and made.k_norm is not None:
            q, k = self.norm(q, made.q_norm), self.norm(k, made.k_norm)
        if shape.positions == "rope" and context is None:
            q, k = rotate(tape, q, self.rope_width), rotate(tape, k, self.rope_width)
        out = attend(tape, q, k, v, self._way(len_of(other, self.batch)))
        del q, k, v, other, context, x
        return self.linear(out, made.out)

    def _way(self, keys: int) -> Way:
        shape = self.shape
        return Way(
            impl=self.job.attention,
            batch=self.batch,
            queries=self.tokens,
            keys=keys,
            heads=shape.heads,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            value_dim=shape.value_dim,
            dropout=self.attention_drop,
            masked=self.job.padded,
            softcap=shape.softcap,
            scattered=shape.joins,
            biased=shape.positions == "relative" and shape.kind == "seq2seq",
            broadcasts=shape.broadcasts,
        )

    def _latent(self, x: Value, made: Attention) -> Value:
        """DeepSeek's attention: keys and values come out of a latent, and are written out."""
        tape, shape = self.tape, self.shape
        down = x if made.query_down is None else self.linear(x, made.query_down)
        if made.query_down is not None:
            down = self.norm(down, made.latent_norms[1])
        q = self.linear(down, _there(made.q))
        latent = self.linear(x, _there(made.key_down))
        latent = self.norm(latent.view(shape.key_rank), made.latent_norms[0])
        kv = self.linear(latent, _there(made.k))
        del latent, down
        q = rotate(tape, q, self.rope_width)
        k = rotate(tape, kv.view(shape.queries), self.rope_width)
        v = kv.view(shape.heads * shape.value_dim)
        out = attend(tape, q, k, v, self._way(self.tokens))
        del q, k, v, kv
        return self.linear(out, made.out)

    def feed(self, x: Value, made: Feed) -> Value:
        """Run a feed-forward part, plain, gated or of experts."""
        tape, shape = self.tape, self.shape
        if made.router is not None:
            return self._experts(x, made)
        if made.fused is not None:
            both = self.linear(x, made.fused)
            gate, up = split(tape, both, (both.cols / 2, both.cols / 2))
            del both
        elif made.gate is not None:
            gate, up = self.linear(x, made.gate), None
        else:
            middle = pointwise(tape, self.linear(x, _there(made.up)), saves=shape.act)
            return self.linear(middle, made.down)
        if self.liger and up is None:
            up = self.linear(x, _there(made.up))
            middle = multiply(tape, gate, up)
            del gate, up
            return self.linear(middle, made.down)
        gate = pointwise(tape, gate, saves=shape.act)
        if up is None:
            up = self.linear(x, _there(made.up))
        middle = multiply(tape, gate, up)
        del gate, up, x
        return self.linear(middle, made.down)

    def _experts(self, x: Value, made: Feed) -> Value:
        """Gather rows for their experts, run these in one grouped product, add up by weight."""
        tape, shape = self.tape, self.shape
        router = linear(tape, x, _there(made.router).weight, shape.experts)
        scores = cast(tape, router, FP32)
        chosen = pointwise(tape, scores, saves="output")
        del scores, router
        rows, width = x.rows * shape.top_k, shape.expert_width
        gathered = self._gather(x, rows)
        if made.expert_up is None or made.expert_down is None:
            return x
        both = linear(tape, gathered, made.expert_up, 2 * width)
        gate, up = split(tape, both, (width, width))
        del both, gathered
        middle = multiply(tape, pointwise(tape, gate, saves=shape.act), up)
        del gate, up
        out = linear(tape, middle, made.expert_down, shape.hidden)
        del middle
        weighted = cast(tape, multiply(tape, out, chosen), x.width)
        del out, chosen
        total = self._gather(weighted, x.rows)
        if made.shared is not None:
            shared = self.feed(x, made.shared)
            total = add(tape, total, shared)
        return total

    def _gather(self, x: Value, rows: int) -> Value:
        """Copy rows to other places; backward adds them up."""
        tape, source, size = self.tape, x.node, x.size

        def back(grad: Block) -> Sequence[Handed]:
            del grad
            return ((source, tape.block(size)),)

        return tape.node(tape.value(rows, x.cols, x.width), [x], back)

    def layer(self, x: Value, made: Layer, context: Value | None = None) -> Value:
        """Run one layer: attention, cross-attention where there is one, feed-forward."""
        shape, tape = self.shape, self.tape
        norms = list(made.norms)
        if shape.parallel:
            return self._parallel(x, made, norms)
        inner = self.norm(x, norms.pop(0)) if shape.first_norms else x
        inner = dropout(tape, self.attention(inner, made.attention), self.drop)
        if shape.post_norms and shape.first_norms:
            inner = self.norm(inner, norms.pop(0))
        x = self._join(x, inner, norms)
        del inner
        if made.cross is not None and context is not None:
            inner = self.norm(x, norms.pop(0))
            inner = dropout(tape, self.attention(inner, made.cross, context), self.drop)
            x = add(tape, x, inner)
            del inner
        inner = self.norm(x, norms.pop(0)) if shape.first_norms else x
        inner = dropout(tape, self.feed(inner, made.feed), self.drop)
        if shape.post_norms and shape.first_norms:
            inner = self.norm(inner, norms.pop(0))
        return self._join(x, inner, norms)

    def _join(self, x: Value, inner: Value, norms: list[Param]) -> Value:
        """Add to the residual; where norms come only behind, normalise (BERT: the sum)."""
        shape = self.shape
        if shape.post_norms and not shape.first_norms:
            if shape.norm == "layer":
                return self.norm(add(self.tape, x, inner), norms.pop(0))
            return add(self.tape, x, self.norm(inner, norms.pop(0)))
        return add(self.tape, x, inner)

    def _parallel(self, x: Value, made: Layer, norms: list[Param]) -> Value:
        """Attention and feed-forward side by side from one norm, or from two."""
        tape = self.tape
        first = self.norm(x, norms[0])
        second = first if self.shape.one_norm else self.norm(x, norms[-1])
        one = dropout(tape, self.attention(first, made.attention), self.drop)
        del first
        two = dropout(tape, self.feed(second, made.feed), self.drop)
        del second
        both = add(tape, one, two)
        del one, two
        return add(tape, both, x)


def len_of(x: Value, batch: int) -> int:
    """Return the tokens of one row."""
    return x.rows // batch


def _there(made: Linear | None) -> Linear:
    if made is None:
        message = "a linear layer is missing"
        raise ValueError(message)
    return made
