"""Head and loss on the tape: full logits, chunks, tiles, fused kernels, a classifier's head.

| path | what it holds |
|---|---|
| full | 16-bit logits, their fp32 copy, log-probabilities; backward two fp32 gradients: 12 bytes |
| chunked (torchtune) | all logits; a chunk in fp32 at a time, but its log-probabilities stay |
| tiles (TRL) | one tile of 4,096 tokens x 32,768 words; fp32 gradients of hidden state and head |
| fused (Liger) | gradients of hidden state and head from forward on, logits of one chunk |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.tape import LOGITS, Block, Value
from oomdoctor.memory.tape_ops import FP32, cast, cross_entropy, linear, pointwise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.memory.formula_network import Network
    from oomdoctor.memory.tape import Handed

TILE_TOKENS, TILE_WORDS, CHUNKS = 4096, 32768, 8
PREFERENCE = ("dpo", "orpo", "kto", "grpo")


def classified(network: Network, x: Value, batch: int) -> Value:
    """Return the loss of a head of a few outputs over one or all tokens of a row."""
    tape = network.tape
    rows = x.rows if network.shape.kind == "decoder" else batch
    x = Value(x.block, rows, x.cols, x.width) if rows == x.rows else _first(network, x, rows)
    scores = linear(tape, x, network.head.weight, network.outputs)
    return cross_entropy(tape, cast(tape, scores, FP32))


def _first(network: Network, x: Value, rows: int) -> Value:
    """Take one token of each row, through the pooler of an encoder."""
    tape, source, size = network.tape, x.node, x.size

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        return ((source, tape.block(size)),)

    taken = tape.node(tape.value(rows, x.cols, x.width), [x], back)
    return pointwise(tape, taken, saves="output")


def of_words(network: Network, x: Value) -> tuple[Value, Block | None]:
    """Return the loss over the vocabulary, and the logits that outlive forward."""
    job = network.job
    if job.loss == "fused" and job.framework in ("trl", "unsloth"):
        return _gradients_first(network, x, tiles=True), None
    if job.loss == "fused":
        return _gradients_first(network, x, tiles=False), None
    if job.loss == "chunked" and job.framework == "trl":
        return _gradients_first(network, x, tiles=True), None
    tape = network.tape
    kind, tape.kind = tape.kind, LOGITS
    logits = linear(tape, x, network.head.weight, network.outputs, bias=network.head.bias)
    del x
    if network.gathering is not None:
        logits = network.gathering.leave_tail(logits)
    if network.shape.final_softcap:
        logits = pointwise(tape, logits, saves="output")
    if job.task in PREFERENCE and job.framework == "trl":
        loss = _log_probs(network, logits)
    elif job.loss == "chunked":
        loss = _chunks(network, logits)
    else:
        plain = network.shape.kind != "decoder" and tape.autocast is None
        wide = logits if plain else cast(tape, logits, FP32)
        loss = cross_entropy(tape, wide)
        del wide
    tape.kind = kind
    return loss, logits.block


def _log_probs(network: Network, logits: Value) -> Value:
    """TRL's log-probabilities of chosen tokens, row by row; autocast's outputs are in fp32."""
    tape = network.tape
    if network.job.amp is not None:
        logits = cast(tape, logits, FP32)
    source, size, width = logits.node, logits.size, logits.width
    kept = [logits.block] if width == FP32 else [tape.block(size, LOGITS)]

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        for_rows = tape.block(size, LOGITS)
        given = ((source, tape.block(size, LOGITS)),)
        del for_rows
        return given

    return tape.node(tape.value(1, 1, FP32), [logits], back, kept)


def _chunks(network: Network, logits: Value) -> Value:
    """Compute the loss chunk by chunk; only the fp32 copies of a chunk are short-lived."""
    tape, job = network.tape, network.job
    chunks = job.loss_chunk if job.loss_chunk and job.loss_chunk <= 64 else CHUNKS
    whole = logits.rows * logits.cols * FP32
    passing = tape.block(whole / chunks)
    kept = [tape.block(whole / chunks, LOGITS) for _ in range(chunks)]
    del passing
    source, size = logits.node, logits.size

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        made: list[Block] = []
        for _ in range(chunks):
            work = [tape.block(whole / chunks, LOGITS) for _ in range(2)]
            made.append(tape.block(size / chunks, LOGITS))
            del work
            kept.pop()
        joined = tape.block(size, LOGITS)
        made.clear()
        return ((source, joined),)

    return tape.node(tape.value(1, 1, FP32), [logits], back)


def _gradients_first(network: Network, x: Value, *, tiles: bool) -> Value:
    """A fused loss never holds all logits; Liger's makes the gradients in forward."""
    tape, head = network.tape, network.head
    width = tape.autocast or x.width
    words, rows = network.outputs, x.rows
    trains = head.weight.trains
    if tiles:
        size = min(rows, TILE_TOKENS) * min(words, TILE_WORDS) * width
    else:
        chunk = -(-rows // max(1, -(-words // max(1, int(x.cols)))))
        size = min(rows, 1 << (chunk - 1).bit_length()) * words * (width + width)
    source, own, wide = x.node, x.size, rows * x.cols * FP32
    weight = head.weight
    made: list[Block] = []
    if not tiles:
        made = [tape.block(own, LOGITS)]
        if trains:
            made.append(tape.block(weight.count * weight.width, LOGITS))
    tile = tape.block(size, LOGITS)
    del tile

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        if not tiles:
            return [(source, made[0]), *(((weight, made[1]),) if trains else ())]
        work = [tape.block(size, LOGITS), tape.block(wide, LOGITS)]
        if trains:
            work.append(tape.block(weight.count * FP32, LOGITS))
        given: list[Handed] = [(source, tape.block(own))]
        if trains:
            given.append((weight, tape.block(weight.count * weight.width)))
        del work
        return given

    saved = [x.block] if tiles else made
    return tape.node(tape.value(1, 1, FP32), [x], back, saved, trains=trains)
