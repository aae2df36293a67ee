"""FSDP on the tape: weights gathered unit by unit, gradients put together and scattered.

| | FSDP1 | FSDP2 |
|---|---|---|
| gathers into | one flat tensor | a buffer that is then copied into the weights |
| the buffer of a unit lives | - | until the next unit has its weights |
| ahead of backward | the next flat tensor | the next buffer |
| gradients of a unit | joined to a flat one (`cat`) | copied to a buffer, there until the next |
| accumulating | flat gradients stay whole | gradients stay whole |

Read off `torch/distributed/fsdp` of 2.13. A layer is a unit; what is in no layer is one more (the
root), which stays gathered from forward to the end of backward. Trainers under FSDP2 gather the
embedding by itself, and the last norm with the output layer, which stay as the root does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.tape import COMMUNICATION, GRADIENT, Block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from oomdoctor.memory.tape import Handed, Param, Tape, Value
    from oomdoctor.model.job import Job

KINDS = ("fsdp1", "fsdp2")
CARVED = ("transformers", "trl", "torchtitan", "axolotl", "llamafactory")
TRAINERS = ("transformers", "trl", "axolotl", "llamafactory", "unsloth")
FP32 = 4


class Unit:
    """Weights that are gathered as one, and their gradients until these are scattered."""

    def __init__(self, gathering: Gathering, weights: Iterable[tuple[Param, int]]) -> None:
        """Take weights, each with how many of its kind there are."""
        held = list(weights)
        trained = [(param, times) for param, times in held if param.trains]
        self.gathering = gathering
        self.size = sum(param.count * param.width * times for param, times in held)
        self.wide = sum(param.count * param.width * times for param, times in trained)
        self.shard = sum(param.count * param.stored * times for param, times in trained)
        self.shard = 0 if gathering.on_host else self.shard // gathering.ranks
        self.weights: Block | None = None
        self.buffer: Block | None = None
        self.fresh: dict[object, Block] = {}
        self.whole: list[Block] = []
        self.own: Block | None = None
        self.running = False
        self.lingers = gathering.flat and len(trained) < len(held)
        """Frozen flat weights are freed once the unit before has gathered its own."""
        for param, _ in held:
            param.unit = self

    def take(self, of: object, grad: Block) -> None:
        """Receive a gradient: a second one of the same weight is added to the first in place."""
        if of in self.fresh or (self.whole and not self.gathering.flat):
            return
        grad.move(GRADIENT)
        self.fresh[of] = grad

    def forget(self) -> None:
        """Set the gradients to None."""
        self.own = None
        self.whole.clear()


class Gathering:
    """All units of a network, and what is under way between them."""

    def __init__(self, tape: Tape, job: Job) -> None:
        """Read the job; units follow."""
        self.tape = tape
        self.flat = job.sharding.kind == "fsdp1"
        self.ranks = max(1, job.sharding.ranks)
        self.on_host = job.sharding.offload_params
        self.reshards = job.sharding.reshard
        self.whole = job.sharding.wrap == "whole"
        self.recomputes = job.checkpointing is not None
        self.carves = not self.flat and job.framework in CARVED and not self.whole
        like_trainer = job.framework in TRAINERS
        said = job.sharding.prefetch
        self.prefetches = not like_trainer if said is None else said
        self.narrow = job.amp is not None
        self.reduces = FP32 // 2 if self.narrow and not like_trainer else 1
        """How many times wider gradients are scattered than they are computed."""
        self.units: list[Unit] = []
        self.order: list[Unit] = []
        self.root: Unit | None = None
        self.tail: Unit | None = None
        self.last = True
        self.ahead: Block | None = None
        self.scattered: Block | None = None

    def unit(self, weights: Iterable[tuple[Param, int]]) -> Unit:
        """Return a new unit of weights."""
        made = Unit(self, weights)
        self.units.append(made)
        return made

    def around(self, unit: Unit, x: Value, run: Callable[[Value], Value]) -> Value:
        """Run a unit: gathered before and freed behind, the same way in backward."""
        self.enter(unit)
        y = run(self._before(unit, x))
        if self.reshards:
            unit.weights = None
        return self.behind(unit, y)

    def embed(self, run: Callable[[], Value]) -> Value:
        """Gather the root for the embedding; where it is a unit by itself, for that alone."""
        if self.root is None:
            return run()
        self.enter(self.root)
        x = run()
        if self.tail is None:
            return x
        if self.reshards:
            self.root.weights = None
        return self.behind(self.root, x)

    def enter_tail(self, x: Value) -> Value:
        """Gather the last norm and the output layer, where they are a unit."""
        if self.tail is None:
            return x
        self.enter(self.tail)
        return self._before(self.tail, x)

    def leave_tail(self, logits: Value) -> Value:
        """Note where backward comes upon the output layer, if that is a unit."""
        if not self.carves:
            return logits
        unit = self.tail or self.root
        return logits if unit is None else self.behind(unit, logits)

    def leave(self, loss: Value) -> Value:
        """Note where backward begins; without one, free what is gathered."""
        self.ahead = None
        if not self.tape.records:
            self.finish()
        elif not self.carves and self.root is not None:
            return self.behind(self.root, loss)
        return loss

    def enter(self, unit: Unit) -> None:
        """Gather for forward."""
        if unit.weights is not None:
            return
        if self.flat:
            unit.weights = self._flat(unit)
            return
        buffer = self.tape.block(unit.size, COMMUNICATION)
        unit.weights = self.tape.block(unit.size, COMMUNICATION)
        self.ahead = buffer

    def _flat(self, unit: Unit) -> Block:
        """Gather a flat tensor; its own part is cast first where weights are narrowed."""
        part = self.tape.block(unit.size / self.ranks * self.narrow, COMMUNICATION)
        gathered = self.tape.block(unit.size, COMMUNICATION)
        del part
        return gathered

    def _before(self, unit: Unit, x: Value) -> Value:
        """Let the unit end in backward where the gradient of its input is there."""
        source = x.node
        if not x.needs or unit.lingers:
            return x

        def back(grad: Block) -> Sequence[Handed]:
            self.end(unit)
            return ((source, grad),)

        return self.tape.node(x.view(), [x], back)

    def behind(self, unit: Unit, y: Value) -> Value:
        """Let the unit be gathered in backward where the gradient of its output is there."""
        source = y.node
        if self.tape.records:
            self.order.append(unit)

        def back(grad: Block) -> Sequence[Handed]:
            self._begin(unit)
            return ((source, grad),)

        return self.tape.node(y.view(), [y], back)

    def _begin(self, unit: Unit) -> None:
        """Gather for backward, and the unit before ahead of its time."""
        unit.running = True
        place = self.order.index(unit) if unit in self.order else 0
        before = self.order[place - 1] if place else None
        if self.flat:
            if unit.weights is None:
                unit.weights = self._flat(unit)
            self._end_others(unit)
            if self.prefetches and before is not None and before.weights is None:
                before.weights = self._flat(before)
            return
        self._end_others(unit)
        if unit.weights is None:
            buffer = unit.buffer or self.tape.block(unit.size, COMMUNICATION)
            unit.buffer = None
            unit.weights = self.tape.block(unit.size, COMMUNICATION)
            self.ahead = buffer if self.recomputes else None
            del buffer
        if before is not None and before.weights is None and not self.recomputes:
            before.buffer = self.tape.block(before.size, COMMUNICATION)

    def _end_others(self, unit: Unit) -> None:
        """End the units behind, which are done where the gradient of this one's output is there."""
        for other in self.units:
            if other.running and other is not unit and other not in (self.root, self.tail):
                self.end(other)

    def end(self, unit: Unit) -> None:
        """Free a unit's weights, put its gradients together and scatter them."""
        unit.running = False
        if self.flat:
            self._end_flat(unit)
        else:
            self._end_each(unit)

    def _end_flat(self, unit: Unit) -> None:
        if unit.fresh:
            joined = self.tape.block(unit.wide, COMMUNICATION)
            unit.fresh.clear()
            if not unit.whole:
                unit.whole.append(joined)
            del joined
        if self.last or self.reshards:
            unit.weights = None
        if unit.whole and self.last:
            widened = self.tape.block(unit.wide * self.reduces * (self.reduces > 1), COMMUNICATION)
            self._keep_shard(unit)
            del widened

    def _end_each(self, unit: Unit) -> None:
        unit.weights = None
        if not (unit.fresh or unit.whole):
            return
        if not self.last:
            if unit.fresh and self.reduces > 1:
                unit.whole = [self.tape.block(unit.wide * self.reduces, GRADIENT)]
            else:
                unit.whole += unit.fresh.values()
            unit.fresh.clear()
            return
        self.scattered = None
        self.scattered = self.tape.block(unit.wide * self.reduces, COMMUNICATION)
        unit.fresh.clear()
        self._keep_shard(unit)

    def _keep_shard(self, unit: Unit) -> None:
        passing = self.tape.block(unit.shard * (self.reduces > 1), COMMUNICATION)
        unit.own = unit.own or self.tape.block(unit.shard, GRADIENT)
        unit.whole.clear()
        del passing

    def skip(self, unit: Unit) -> None:
        """Let layers that are not walked pass: their gradients are scattered, or stay whole."""
        if not unit.wide:
            return
        if self.last:
            unit.whole.clear()
            unit.own = unit.own or self.tape.block(unit.shard, GRADIENT)
        elif not unit.whole:
            unit.whole.append(self.tape.block(unit.wide * self._kept_wider(), GRADIENT))

    def _kept_wider(self) -> int:
        return 1 if self.flat else self.reduces

    def finish(self) -> None:
        """End what the backward pass left: the root, and units whose input needs no gradient."""
        for unit in self.units:
            if unit.running or unit.weights is not None or unit.fresh:
                self.end(unit)
            unit.buffer = None
        self.order.clear()
        self.ahead = self.scattered = None
