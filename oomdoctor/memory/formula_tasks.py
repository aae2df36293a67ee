"""What tasks do with the last states of a network before or in the place of a loss over words.

| task | what is kept |
|---|---|
| embedding | two passes, one for each column: the last states and their mask, as wide |
| grpo | the states of the answers alone go to the output layer |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.memory.formula_network import Network
    from oomdoctor.memory.tape import Block, Handed, Value
    from oomdoctor.model.job import Job

SCORE = 4  # bytes


def pair_loss(network: Network, batch: int, tokens: int) -> Value:
    """Return the loss of pairs of sentences, whose columns go through the network in turn."""
    columns = [_sentence(network, network.forward(batch, tokens), batch) for _ in range(2)]
    tape = network.tape
    tape.part = "loss"

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        return [(one.node, tape.block(one.size)) for one in reversed(columns)]

    return tape.node(tape.value(1, 1, SCORE), columns, back)


def _sentence(network: Network, x: Value, batch: int) -> Value:
    """Return the mean of each row's tokens; the last states live on among the features."""
    tape, source, size = network.tape, x.node, x.size

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        return ((source, tape.block(size)),)

    mask = tape.block(size)
    product = tape.block(size)
    del product
    return tape.node(tape.value(batch, x.cols, x.width), [x], back, [x.block, mask])


def answers(network: Network, x: Value, batch: int) -> Value:
    """Return the states of the answers' tokens, of which a row has as many as are generated."""
    tape, source, size = network.tape, x.node, x.size
    rows = min(x.rows, batch * (answer_tokens(network.job) + 1))

    def back(grad: Block) -> Sequence[Handed]:
        del grad
        return ((source, tape.block(size)),)

    return tape.node(tape.value(rows, x.cols, x.width), [x], back)


def answer_tokens(job: Job) -> int:
    """Return the tokens of a row that are its answer: those generated, else half of them."""
    new = job.generation.new_tokens if job.generation is not None else job.seq_len // 2
    return max(1, min(new, job.seq_len - 1))
