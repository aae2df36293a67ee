"""Attention on the tape: in tiles, in full, and the rotation of queries and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.tape_ops import FP32, cast, dropout
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.memory.tape import Block, Handed, Tape, Value

TILE_ROWS, TILE_COLS = 128, 32


class Way(NamedTuple):
    """How attention is computed: implementation, rows, tokens on both sides, heads, dropout."""

    impl: str
    batch: int
    queries: int
    keys: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int = 0
    dropout: float = 0.0
    masked: bool = False
    softcap: bool = False
    scattered: bool = False
    biased: bool = False
    broadcasts: bool = False


def rotate(tape: Tape, x: Value, wide: int) -> Value:
    """Turn queries or keys by their position; cos and sin are shared by all layers."""
    width = max(x.width, wide)
    cosine = tape.value(x.rows, x.cols, width)
    half = tape.value(x.rows, x.cols, x.width)
    sine = tape.value(x.rows, x.cols, width)
    del half
    source, size, whole = x.node, x.size, x.rows * x.cols * width

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        turned = tape.block(whole)
        slices = tape.block(2 * size)
        given = ((source, tape.block(size)),)
        del turned, slices
        return given

    out = tape.node(tape.value(x.rows, x.cols, width), [x], back)
    del cosine, sine
    return out


def attend(tape: Tape, q: Value, k: Value, v: Value, way: Way) -> Value:
    """Compute attention; under autocast in its dtype."""
    if tape.autocast is not None:
        q, k, v = (cast(tape, one, tape.autocast) for one in (q, k, v))
    if way.impl == "sdpa" and way.broadcasts and way.kv_heads < way.heads:
        width = q.width
        q, k, v = (cast(tape, one, FP32) for one in (q, k, v))
        return cast(tape, _full(tape, q, k, v, way), width)  # torch's own kernel, in fp32
    eager = way.impl in ("eager", "math") or way.softcap or _lacks_kernel(q, way)
    return _full(tape, q, k, v, way) if eager else _tiled(tape, q, k, v, way)


def _lacks_kernel(q: Value, way: Way) -> bool:
    """Say that SDPA has no kernel: flash takes 16 bits alone, and the other no shared keys.

    With a mask transformers repeats the keys itself, so that the second one takes them.
    """
    return way.impl == "sdpa" and q.width == FP32 and way.kv_heads < way.heads and not way.masked


def _tiled(tape: Tape, q: Value, k: Value, v: Value, way: Way) -> Value:
    """flash, memory-efficient and cuDNN attention save no score."""
    repeats = way.masked and way.impl == "sdpa" and way.kv_heads < way.heads
    if repeats:
        k, v = repeated(tape, k, way), repeated(tape, v, way)
    out = tape.value(q.rows, way.heads * (way.value_dim or way.head_dim), q.width)
    sums = tape.block(way.batch * way.heads * way.queries * FP32)
    nodes, sizes = (q.node, k.node, v.node), (q.size, k.size, v.size)
    width = q.width

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        rows = way.batch * -(-way.queries // TILE_ROWS) * TILE_ROWS * way.heads
        keys = way.batch * way.keys * way.heads * (way.head_dim + (way.value_dim or way.head_dim))
        given = [(node, tape.block(size)) for node, size in zip(nodes, sizes, strict=True)]
        work = [tape.block(rows * FP32)]
        if width != FP32:
            padded = -(-way.head_dim // TILE_COLS) * TILE_COLS
            work.append(tape.block(rows * padded * FP32))
        if way.kv_heads < way.heads and not repeats:
            work.append(tape.block(keys * width))
        del work
        return given

    saved = [q.block, k.block, v.block, out.block, sums]
    if way.biased:  # T5's own bias for each pair and head, in every layer
        rows = way.batch if way.masked else 1
        saved.append(tape.block(rows * way.heads * way.queries * way.keys * width))
    elif way.masked and way.impl == "sdpa":  # the bias is padded to whole vectors
        saved.append(tape.block(way.batch * way.queries * -(-way.keys // 8) * 8 * width))
    out = tape.node(out, [q, k, v], back, saved)
    return _contiguous(tape, out) if way.scattered else out


def repeated(tape: Tape, x: Value, way: Way) -> Value:
    """Repeat keys or values for every head that shares them."""
    if way.kv_heads == way.heads:
        return x
    source, size = x.node, x.size

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        return ((source, tape.block(size)),)

    times = way.heads // way.kv_heads
    return tape.node(tape.value(x.rows, x.cols * times, x.width), [x], back)


def _full(tape: Tape, q: Value, k: Value, v: Value, way: Way) -> Value:
    """Scores, their fp32 softmax and its 16-bit copy are written out for every pair."""
    k, v = repeated(tape, k, way), repeated(tape, v, way)
    pairs = way.batch * way.heads * way.queries * way.keys
    width, rows = q.width, q.rows
    probabilities = _scores(tape, q, k, way)
    if way.dropout:
        probabilities = dropout(tape, probabilities, way.dropout)
    out = tape.value(rows, way.heads * (way.value_dim or way.head_dim), width)
    source, values, size = probabilities.node, v.node, v.size

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        return [(source, tape.block(pairs * width)), (values, tape.block(size))]

    out = tape.node(out, [probabilities, v], back, [probabilities.block, v.block])
    del probabilities
    return _contiguous(tape, out)


def _contiguous(tape: Tape, x: Value) -> Value:
    """Copy what transposing scattered."""
    source, size = x.node, x.size

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        return ((source, tape.block(size)),)

    return tape.node(tape.value(x.rows, x.cols, x.width), [x], back)


def _scores(tape: Tape, q: Value, k: Value, way: Way) -> Value:
    """Return the probabilities in the dtype of the products."""
    pairs = way.batch * way.heads * way.queries * way.keys
    width = q.width
    product = tape.block(pairs * width)
    scaled = tape.block(pairs * width)
    del product
    saved = [q.block, k.block]
    if way.softcap:  # tanh of the scores is kept, and what it is of
        saved.append(tape.block(pairs * width))
    masked = tape.block(pairs * width)
    del scaled
    soft = tape.block(pairs * FP32)
    del masked
    saved.append(soft)
    out = tape.value(way.batch * way.heads * way.queries, way.keys, width)
    if width == FP32:
        out.block = soft
    nodes, sizes = (q.node, k.node), (q.size, k.size)

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        wide = tape.block(pairs * FP32) if width != FP32 else None
        soft_grad = tape.block(pairs * FP32)
        del wide
        narrow = tape.block(pairs * width)
        del soft_grad
        unscaled = tape.block(pairs * width)
        del narrow
        given = [(node, tape.block(size)) for node, size in zip(nodes, sizes, strict=True)]
        del unscaled
        return given

    return tape.node(out, [q, k], back, saved)
