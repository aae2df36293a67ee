"""Operators on the tape: what each allocates, saves for backward, and needs while it runs.

| operator | saves (from the derivatives of torch 2.13) |
|---|---|
| linear | its input where the weight trains; the weight's 16-bit copy under autocast |
| RMSNorm of transformers | the input in fp32, the normalised input where the weight trains |
| LayerNorm | its input and two numbers for each row |
| silu, gelu | the input; relu the output; products what the other factor needs |
| attention in tiles | q, k, v, the output and one fp32 number for each row and head |
| eager attention | fp32 probabilities and their 16-bit copy: 6 bytes for each pair |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.tape import LOGITS, Block, Param, Tape, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.memory.tape import Handed

FP32 = 4


def cast(tape: Tape, x: Value, width: int) -> Value:
    """Return the value in another width; the same value where it has it."""
    if x.width == width:
        return x
    source, size = x.node, x.size

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        return ((source, tape.block(size)),)

    return tape.node(tape.value(x.rows, x.cols, width), [x], back)


def weight_copy(tape: Tape, weight: Param) -> Block | None:
    """Return autocast's 16-bit copy of an fp32 weight: kept until autocast ends where it trains."""
    if tape.autocast is None or weight.width == tape.autocast or weight.quantised:
        return None
    held = tape.casts.get(weight)
    if held is not None:
        return held.block
    copy = Value(tape.block(weight.count * tape.autocast), 1, weight.count, tape.autocast)
    if weight.trains:
        tape.casts[weight] = copy
    return copy.block


def linear(tape: Tape, x: Value, weight: Param, out: float, *, bias: Param | None = None) -> Value:
    """Multiply with a weight; under autocast in its dtype."""
    if tape.autocast is not None:
        x = cast(tape, x, tape.autocast)
    compute = tape.autocast or (x.width if weight.quantised else weight.width)
    copy = weight_copy(tape, weight)
    unpacked = tape.block(weight.count * 2) if weight.quantised else None
    y = tape.value(x.rows, out, compute)
    del unpacked
    needs, source, size = x.needs, x.node, x.size
    anyway = tape.saves_inputs or (weight.quantised and tape.keeps_inputs)
    keeps = weight.trains or (anyway and x.needs)
    saved = [x.block] if keeps else []
    saved += [copy] if copy is not None and (needs or weight.trains) else []

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        given: list[Handed] = []
        if needs:
            unpack = tape.block(weight.count * 2) if weight.quantised else None
            given.append((source, tape.block(size)))
            del unpack
        if weight.trains:
            made = tape.block(weight.count * compute)
            if compute != weight.width:
                made = tape.block(weight.count * weight.width)
            given.append((weight, made))
        if bias is not None and bias.trains:
            given.append((bias, tape.block(bias.count * bias.width)))
        return given

    return tape.node(y, [x], back, saved, trains=weight.trains)


def add(tape: Tape, a: Value, b: Value) -> Value:
    """Add two values: gradients pass through as they are."""
    first, second = a.node, b.node
    width = max(a.width, b.width)
    widths = (a.width, b.width)
    count = a.rows * a.cols

    def back(grad: Block) -> Sequence[Handed]:
        given: list[Handed] = []
        for node, own in ((first, widths[0]), (second, widths[1])):
            if node is not None:
                given.append((node, grad if own == width else tape.block(count * own)))
        return given

    return tape.node(tape.value(a.rows, a.cols, width), [a, b], back)


def rms_norm(tape: Tape, x: Value, weight: Param, *, way: str = "rms") -> Value:
    """Normalise as transformers' RMSNorm does: in fp32, then times the weight.

    `way` is rms, wide (times the weight in fp32), gemma (the same, by 1 + weight), or cohere (a
    LayerNorm in Python, which computes the differences to the mean twice).
    """
    gemma = way != "rms"
    wide = cast(tape, x, FP32)
    squares = tape.value(x.rows, x.cols, FP32)
    scale = tape.value(x.rows, 1, FP32)
    del squares
    narrow = FP32 if gemma else x.width
    normed = tape.value(x.rows, x.cols, FP32)
    if narrow != FP32:
        normed = tape.value(x.rows, x.cols, narrow)
    width = max(narrow, weight.width) if not gemma else FP32
    y = tape.value(x.rows, x.cols, width)
    if gemma and x.width != FP32:
        del y
        y = tape.value(x.rows, x.cols, x.width)
    saved = [wide.block, scale.block]
    saved += [normed.block] if weight.trains else []
    if way == "cohere":
        saved.append(tape.block(x.rows * x.cols * FP32))
        if x.width == FP32:
            saved.append(tape.block(x.rows * x.cols * FP32))
    source, size, whole = x.node, x.size, x.rows * x.cols * FP32
    del normed, scale

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        given: list[Handed] = []
        if weight.trains:
            product = tape.block(whole if gemma else whole * narrow / FP32)
            given.append((weight, tape.block(weight.count * weight.width)))
            del product
        one = tape.block(whole)
        two = tape.block(whole)
        three = tape.block(whole)
        del one
        given.append((source, tape.block(size) if size != whole else three))
        del two
        return given

    return tape.node(y, [x], back, saved, trains=weight.trains)


def layer_norm(tape: Tape, x: Value, weight: Param) -> Value:
    """Normalise with torch's own kernel; autocast runs it in fp32."""
    if tape.autocast is not None:
        x = cast(tape, x, FP32)
    y = tape.value(x.rows, x.cols, x.width)
    numbers = tape.block(2 * x.rows * FP32)
    source, size = x.node, x.size

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        given: list[Handed] = [(source, tape.block(size))]
        if weight.trains:
            given.append((weight, tape.block(2 * weight.count * weight.width)))
        return given

    return tape.node(y, [x], back, [x.block, numbers], trains=weight.trains)


def pointwise(tape: Tape, x: Value, *, saves: str = "input") -> Value:
    """Apply an activation that saves its input or its output, or GPT-2's gelu in Python."""
    if saves == "python":
        return _gelu_new(tape, x)
    y = tape.value(x.rows, x.cols, x.width)
    source, size = x.node, x.size

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        return ((source, tape.block(size)),)

    return tape.node(y, [x], back, [y.block] if saves == "output" else [x.block])


def _gelu_new(tape: Tape, x: Value) -> Value:
    """Compute 0.5 x (1 + tanh(...)): x, tanh and both factors are kept; autocast cubes in fp32."""
    width = FP32 if tape.autocast is not None else x.width
    cubed = x.block if width == x.width else tape.block(x.rows * x.cols * width)
    whole = x.rows * x.cols * width
    half = tape.block(x.size)
    passing = tape.block(2 * whole)
    kept = [cubed, half, tape.block(whole), tape.block(whole)]
    del passing
    source, size = x.node, x.size

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        passing = tape.block(2 * whole)
        given = ((source, tape.block(size)),)
        del passing
        return given

    return tape.node(tape.value(x.rows, x.cols, width), [x], back, kept)


def multiply(tape: Tape, a: Value, b: Value) -> Value:
    """Multiply two values: each is what the other's gradient needs."""
    first, second, sizes = a.node, b.node, (a.size, b.size)

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        pairs = ((first, sizes[0]), (second, sizes[1]))
        return [(node, tape.block(size)) for node, size in pairs if node is not None]

    y = tape.value(a.rows, a.cols, max(a.width, b.width))
    return tape.node(y, [a, b], back, [a.block, b.block])


def scale(tape: Tape, x: Value) -> Value:
    """Multiply with a number: nothing is saved."""
    source, size = x.node, x.size

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        return ((source, tape.block(size)),)

    return tape.node(tape.value(x.rows, x.cols, x.width), [x], back)


def split(tape: Tape, x: Value, widths: Sequence[float]) -> list[Value]:
    """Cut columns apart: views of one storage, whose gradients are put together in a new one."""
    source, size = x.node, x.size
    parts = [Value(x.block, x.rows, cols, x.width) for cols in widths]
    held: list[Block] = []

    def back(grad: Block) -> Sequence[Handed]:
        held.append(grad)
        if len(held) < len(widths):
            return ()
        joined = tape.block(size)
        held.clear()
        return ((source, joined),)

    for part in parts:
        tape.node(part, [x], back)
    return parts


def dropout(tape: Tape, x: Value, share: float) -> Value:
    """Drop values: a mask of one byte each; nothing happens at zero."""
    if not share:
        return x
    y = tape.value(x.rows, x.cols, x.width)
    mask = tape.block(x.rows * x.cols)
    source, size = x.node, x.size

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        return ((source, tape.block(size)),)

    return tape.node(y, [x], back, [mask])


def embedding(tape: Tape, weight: Param, rows: int, cols: int) -> Value:
    """Look rows up; the gradient is as large as the table."""

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        return ((weight, tape.block(weight.count * weight.width)),)

    y = tape.value(rows, cols, weight.width)
    return tape.node(y, [], back, trains=weight.trains)


def cross_entropy(tape: Tape, logits: Value) -> Value:
    """Compute the plain loss in the dtype of the logits: log-probabilities are saved."""
    kind, tape.kind = tape.kind, LOGITS
    log_probs = tape.value(logits.rows, logits.cols, logits.width)
    source, size = logits.node, logits.size

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        for_log = tape.block(size, LOGITS)
        given = ((source, tape.block(size, LOGITS)),)
        del for_log
        return given

    loss = tape.node(tape.value(1, 1, FP32), [logits], back, [log_probs.block])
    tape.kind = kind
    return loss
