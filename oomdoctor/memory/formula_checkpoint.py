"""Checkpointing on the tape: a layer keeps its input alone, and runs again in backward."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.tape import ACTIVATION, Node, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.memory.formula_params import Layer
    from oomdoctor.memory.tape import Block, Handed, Tape


def checkpoint(
    tape: Tape,
    run: Callable[[Value, Layer, Value | None], Value],
    made: Layer,
    x: Value,
    context: Value | None,
    *,
    moves: bool,
) -> Value:
    """Run a layer without records; `moves` says that its input leaves the card until then."""
    with tape.quiet():
        y = run(x, made, context)
    source = x.node
    block: list[Block] = [] if moves else [x.block]
    like = (x.rows, x.cols, x.width)
    autocast = tape.autocast

    def back(grad: Block) -> Sequence[Handed]:
        kind, tape.kind = tape.kind, ACTIVATION
        tape.autocast, before = autocast, tape.autocast
        again = Value(block[0] if block else tape.block(like[0] * like[1] * like[2]), *like)
        leaf = Node(nothing, ())
        again.node, again.needs = leaf, True
        nodes, tape.nodes = tape.nodes, []
        out = run(again, made, context)
        del again
        inner, tape.nodes = tape.nodes, nodes
        tape.leave_autocast()
        tape.autocast = before
        if out.node is not None:
            out.node.grad = grad
        del out, grad
        tape.backward(inner)
        tape.kind = kind
        return ((source, leaf.grad),) if leaf.grad is not None else ()

    return tape.node(y, [x], back, block, trains=True)


def nothing(grad: Block) -> Sequence[Handed]:
    """Hand nothing on: what is before needs no gradient."""
    del grad
    return ()
