"""A whole network on the tape: embedding, layers, head and loss.

Equal layers need not be walked one by one: the first two and the last are, and what one of them
keeps stands for those between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory import formula_loss, formula_tasks
from oomdoctor.memory.formula_checkpoint import checkpoint, nothing
from oomdoctor.memory.formula_gather import KINDS, Gathering
from oomdoctor.memory.formula_groups import Group
from oomdoctor.memory.formula_layers import Runner
from oomdoctor.memory.formula_params import Maker, layer
from oomdoctor.memory.formula_zero import Buckets
from oomdoctor.memory.tape import ACTIVATION, GRADIENT, Block, Param, Value
from oomdoctor.memory.tape_ops import add, dropout, embedding, scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.memory.formula_gather import Unit
    from oomdoctor.memory.formula_params import Layer
    from oomdoctor.memory.formula_shape import Shape
    from oomdoctor.memory.tape import Handed, Tape
    from oomdoctor.model.job import Job

EXACT = 3
ELSEWHERE = 1 << 62
"""The share of gradients that live in buffers made before: nothing of them is theirs."""
INT64 = 8


class Network:
    """The weights of a job's model, and its forward pass for training or evaluation."""

    def __init__(self, tape: Tape, job: Job, shape: Shape) -> None:
        """Make all weights; they are alive from `load` on."""
        self.tape = tape
        self.job = job
        self.shape = shape
        self.maker = Maker(job)
        maker, hidden = self.maker, shape.hidden
        self.table = maker.weight("embed_tokens", shape.vocab * (shape.embedding or hidden))
        self.places = maker.weight("positions", shape.places * hidden * _learned(shape))
        self.final = maker.norm("norm", hidden)
        self.groups = self._stack("layers", shape.layers, cross=shape.kind == "seq2seq")
        self.encoder: list[Group] = []
        if shape.encoder:
            self.encoder = self._stack("encoder", shape.encoder, cross=False)
        outputs = job.labels if job.labels is not None else shape.vocab
        tied = (shape.tied and job.labels is None) or job.task == "embedding"
        self.head = maker.linear(
            "score" if job.labels is not None else "lm_head", shape.embedding or hidden, outputs
        )
        own = maker.bases.get(self.head.name, self.head.weight)
        maker.unpack(own)
        if tied:
            maker.params.remove(own)
        if tied and own is self.head.weight:
            table = maker.bases.get("embed_tokens", self.table)
            self.head = self.head._replace(weight=table)
        self.table.tied = self.head.weight is self.table and job.task != "embedding"
        self.outputs = outputs
        views = job.sharding.kind == "ddp" and job.sharding.bucket_views
        self.share = ELSEWHERE if views else 1
        for param in maker.params:
            param.share = self.share
        self.gathering: Gathering | None = None
        self.autocasts = not maker.narrows or maker.widens
        if job.sharding.kind in KINDS:
            self.gathering = self._units(Gathering(tape, job))
        self.buckets: Buckets | None = None
        if job.sharding.kind.startswith("zero"):
            self.buckets = Buckets(tape, job, self.counted(), hidden=hidden)

    def _stack(self, name: str, count: int, *, cross: bool) -> list[Group]:
        """Return the runs of equal layers; kinds that alternate count as runs of their own."""
        shape, job = self.shape, self.job
        chosen = job.lora.layers if job.lora is not None else ()
        kinds: dict[tuple[bool, bool], list[int]] = {}
        for index in range(count):
            step = (index + 1) % shape.expert_step == 0
            mixed = bool(shape.experts) and index >= shape.dense and step
            kinds.setdefault((mixed, not chosen or index in chosen), []).append(index)
        return [
            self._group(name, indices, mixed=mixed, cross=cross)
            for (mixed, _), indices in kinds.items()
        ]

    def _group(self, name: str, indices: list[int], *, mixed: bool, cross: bool) -> Group:
        walked = indices if len(indices) <= EXACT + 1 else [*indices[:2], indices[-1]]
        layers: list[Layer] = []
        weights: list[list[Param]] = []
        for index in walked:
            before = len(self.maker.params)
            made = layer(self.maker, self.shape, index, mixed=mixed, cross=cross, stack=name)
            layers.append(made)
            weights.append(self.maker.params[before:])
        return Group(layers, weights, len(indices) - len(walked))

    @property
    def exchanges(self) -> Iterator[Gathering | Buckets]:
        """Go through what exchanges gradients with other ranks."""
        yield from (one for one in (self.gathering, self.buckets) if one is not None)

    def _units(self, gathering: Gathering) -> Gathering:
        """Make the units that FSDP gathers: the layers, and what is in none of them."""
        for group in (*self.encoder, *self.groups):
            if gathering.whole:
                continue
            group.units = [gathering.unit((one, 1) for one in own) for own in group.weights]
            if group.skipped:
                group.bulk = gathering.unit((one, group.skipped) for one in group.per_layer)
                for param in group.per_layer:
                    param.unit = group.units[1]
        rest = [(one, times) for one, times in self.counted() if one.unit is None]
        ends = (self.table, self.places)
        if gathering.carves and self.head.weight is not self.table:
            gathering.root = gathering.unit(one for one in rest if one[0] in ends)
            gathering.tail = gathering.unit(one for one in rest if one[0] not in ends)
        else:
            gathering.root = gathering.unit(rest)
        return gathering

    def counted(self) -> list[tuple[Param, int]]:
        """Return every weight with how many of its kind there are."""
        times: dict[Param, int] = {}
        for group in (*self.encoder, *self.groups):
            for param in group.per_layer:
                times[param] = 1 + group.skipped
        return [(param, times.get(param, 1)) for param in self.maker.params]

    def begin(self, batch: int, tokens: int) -> Runner:
        """Return what runs the layers for a batch."""
        return Runner(self.tape, self.job, self.shape, batch=batch, tokens=tokens)

    def forward(self, batch: int, tokens: int, *, target: int | None = None) -> Value:
        """Run to the last hidden state."""
        tape, shape = self.tape, self.shape
        tape.module = "embed_tokens"
        runner = self.begin(batch, tokens)
        if shape.kind == "seq2seq":
            inputs = shape.encoder_tokens or tokens
            runner = self.begin(batch, inputs)
            x = self._embed(batch * inputs, tokens=inputs)
            for group in self.encoder:
                x = self.run(runner, group, x)
            context: Value | None = x
            length = target or tokens
            runner = self.begin(batch, length)
            x = self._embed(batch * length, tokens=length)
        else:
            context = None
            x = self._embed(batch * tokens, tokens=tokens)
        for group in self.groups:
            x = self.run(runner, group, x, context)
        tape.module = "norm"
        if self.gathering is not None:
            x = self.gathering.enter_tail(x)
        if shape.first_norms or shape.norm != "layer":
            x = runner.norm(x, self.final)
        return x

    def _embed(self, rows: int, *, tokens: int) -> Value:
        """Look tokens up, where a unit of its own is gathered for it or the root is."""
        if self.gathering is None:
            return self._embedded(rows, tokens=tokens)
        return self.gathering.embed(lambda: self._embedded(rows, tokens=tokens))

    def _embedded(self, rows: int, *, tokens: int) -> Value:
        """Look tokens up, add positions, normalise where the family does."""
        tape, shape = self.tape, self.shape
        if shape.kind == "vision" or not self.table.count:
            x = tape.value(rows, shape.hidden, self.maker.rest)
            if self.table.trains or self.job.lora is None:
                tape.node(x, [], nothing, trains=self.job.trains)
        else:
            x = embedding(tape, self.table, rows, shape.hidden)
        if self.places.count:
            x = add(tape, x, tape.value(tokens, shape.hidden * rows / tokens, x.width))
        if shape.norm == "gemma":
            x = scale(tape, x)
        if not shape.first_norms and shape.norm == "layer":
            x = self.begin(1, rows).norm(x, self.final)
        if shape.positions == "rope":
            width = 4 if self.job.dtype == "fp32" and not self.maker.narrows else 2
            self.turns = tape.block(2 * tokens * (shape.rope_dim or shape.head_dim) * width)
        return dropout(tape, x, shape.dropout if self.job.trains else 0.0)

    def run(self, runner: Runner, group: Group, x: Value, context: Value | None = None) -> Value:
        """Run a run of layers: those that are walked, and what the others keep as one."""
        for number, made in enumerate(group.layers):
            self.tape.module = made.attention.out.name.rsplit(".", 2)[0]
            before, casts = dict(self.tape.parts), len(self.tape.casts)
            held = sum(value.block.size for value in self.tape.casts.values())
            unit = group.units[number] if group.units else None
            x = self._layer(runner, made, x, context, unit)
            if number == 1 and group.skipped:
                copies = sum(value.block.size for value in self.tape.casts.values()) - held
                x = self._bulk(group, x, before, copies if len(self.tape.casts) > casts else 0)
        return x

    def _layer(
        self,
        runner: Runner,
        made: Layer,
        x: Value,
        context: Value | None,
        unit: Unit | None,
    ) -> Value:
        """Run one layer, recomputed in backward where the job checkpoints."""
        if self.gathering is not None and unit is not None:
            return self.gathering.around(
                unit, x, lambda inner: self._plain_layer(runner, made, inner, context)
            )
        return self._plain_layer(runner, made, x, context)

    def _plain_layer(self, runner: Runner, made: Layer, x: Value, context: Value | None) -> Value:
        job = self.job
        if job.checkpointing is None or not self.tape.records:
            return runner.layer(x, made, context)
        moves = job.offloads_activations
        return checkpoint(self.tape, runner.layer, made, x, context, moves=moves)

    def _bulk(self, group: Group, x: Value, before: dict[str, int], copies: int) -> Value:
        """Let what one layer kept stand for the layers that are not walked."""
        tape, times = self.tape, group.skipped
        grown = {
            part: size - before.get(part, 0)
            for part, size in tape.parts.items()
            if size > before.get(part, 0) and part != GRADIENT
        }
        passing = copies if self.job.checkpointing is not None else 0
        grown[ACTIVATION] = grown.get(ACTIVATION, 0) - passing
        held = [tape.block(size * times, part) for part, size in grown.items() if size > 0]
        if passing:
            name = Param("casts", 0, 0, trains=False)
            tape.casts[name] = Value(tape.block(passing * times), 1, 1, 1)
        source = x.node
        grads = sum(p.count * p.width for p in group.per_layer if p.trains) * times // self.share

        def back(grad: Block) -> Sequence[Handed]:
            held.clear()
            if self.gathering is not None and group.bulk is not None:
                self.gathering.skip(group.bulk)
            elif self.buckets is not None:
                self.buckets.skip(group, grads)
            elif self.gathering is not None and self.gathering.root is not None:
                self.gathering.root.take(group, tape.block(grads))
            elif group.bulk_grads is None and grads:
                group.bulk_grads = tape.block(grads, GRADIENT)
            return ((source, grad),)

        return tape.node(x.view(), [x], back, trains=bool(grads))

    def grads(self) -> int:
        """Return the bytes of all gradients together."""
        return sum(p.count * p.width * times for p, times in self.counted() if p.trains)

    def forget_grads(self) -> None:
        """Set all gradients to None."""
        for param in self.maker.params:
            param.grad = None
        for unit in self.gathering.units if self.gathering is not None else ():
            unit.forget()
        if self.buckets is not None:
            self.buckets.forget()
        for group in (*self.encoder, *self.groups):
            group.bulk_grads = None

    def loss(self, batch: int, tokens: int) -> tuple[Value, Block | None]:
        """Run forward and loss; also return the logits that the caller may hold on to."""
        found, logits = self._loss(batch, tokens)
        if self.gathering is not None:
            found = self.gathering.leave(found)
        return found, logits

    def _loss(self, batch: int, tokens: int) -> tuple[Value, Block | None]:
        job = self.job
        if job.task == "embedding":
            return formula_tasks.pair_loss(self, batch, tokens), None
        x = self.forward(batch, tokens, target=job.target_len)
        if job.task == "grpo":
            x = formula_tasks.answers(self, x, batch)
        self.tape.part = "loss"
        self.tape.module = "lm_head"
        if job.labels is not None or self.shape.vocab == 0:
            return formula_loss.classified(self, x, batch), None
        return formula_loss.of_words(self, x)


def _learned(shape: Shape) -> int:
    return 1 if shape.positions == "learned" else 0
