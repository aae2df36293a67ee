"""A tape of arithmetic: what a training step allocates, keeps and frees, without any tensor.

A `Block` is a storage: it counts from where it is made until nobody holds it any more, as torch's
storages do; CPython's reference counts are the life times. Operators (tape_ops) make values and
nodes; backward walks the nodes in reverse, frees what each one saved and hands gradients on.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    Handed: TypeAlias = "tuple[Node | Param | None, Block]"
    Back: TypeAlias = "Callable[[Block], Sequence[Handed]]"

WEIGHT, ADAPTER, GRADIENT, OPTIMIZER = "weights", "adapter", "gradient", "optimizer"
ACTIVATION, LOGITS, WORKSPACE = "activation", "logits and loss", "workspace"
TEMPORARY, CACHE, INPUT, COMMUNICATION = "temporary", "kv cache", "input", "communication"
ROUND = 512
_HELD_ONCE = 3  # by the node, by a local name, by the call that asks


class Top(NamedTuple):
    """A highest point: its bytes, what it is made of, and where it is."""

    size: int
    parts: dict[str, int]
    place: tuple[str, str, str]


class Tape:
    """Counts live bytes by part and remembers the highest point and what it was made of."""

    def __init__(self) -> None:
        """Begin with nothing alive.

        `keeps_inputs` says that quantised layers save their input although their weight is frozen,
        as bitsandbytes up to 0.41 did; `saves_inputs` that all linear layers do, as under ZeRO-3.
        """
        self.live = 0
        self.parts: dict[str, int] = {}
        self.peak = 0
        self.peak_parts: dict[str, int] = {}
        self.peak_place: tuple[str, str, str] = ("", "", "")
        self.phase = ""
        self.part = ""
        self.module = ""
        self.phases: dict[str, int] = {}
        self.nodes: list[Node] = []
        self.records = True
        self.autocast: int | None = None
        self.casts: dict[Param, Value] = {}
        self.kind = ACTIVATION
        self.keeps_inputs = False
        self.saves_inputs = False

    def grow(self, size: int, part: str) -> None:
        """Count new bytes."""
        self.live += size
        self.parts[part] = self.parts.get(part, 0) + size
        if self.live > self.peak:
            self.peak = self.live
            self.peak_parts = dict(self.parts)
            self.peak_place = (self.phase, self.part, self.module)
        if self.live > self.phases.get(self.phase, 0):
            self.phases[self.phase] = self.live

    def shrink(self, size: int, part: str) -> None:
        """Count bytes that are free again."""
        self.live -= size
        self.parts[part] -= size

    def begin(self, phase: str) -> None:
        """Begin a phase; what is alive counts for it."""
        self.phase, self.part = phase, ""
        self.grow(0, WEIGHT)
        self.phases[phase] = max(self.phases.get(phase, 0), self.live)

    def top(self) -> Top:
        """Return the highest point so far."""
        return Top(self.peak, self.peak_parts, self.peak_place)

    def again(self, top: Top, phase: str, size: int, part: str) -> None:
        """Let a point come again in another phase, with `size` more bytes of a part."""
        self.phases[phase] = max(self.phases.get(phase, 0), top.size + size)
        if top.size + size > self.peak:
            self.peak = top.size + size
            self.peak_parts = {**top.parts, part: top.parts.get(part, 0) + size}
            self.peak_place = (phase, *top.place[1:])

    def block(self, size: float, part: str | None = None) -> Block:
        """Return new storage of so many bytes."""
        return Block(self, size, part or self.kind)

    def value(self, rows: int, cols: float, width: int, *, part: str | None = None) -> Value:
        """Return a new value of rows x columns of so many bytes each."""
        return Value(self.block(rows * cols * width, part), rows, cols, width)

    def node(
        self,
        out: Value,
        inputs: Sequence[Value],
        back: Back,
        saved: Sequence[Block] = (),
        *,
        trains: bool = False,
    ) -> Value:
        """Record how `out` came about, where anything behind it needs a gradient."""
        if self.records and (trains or any(value.needs for value in inputs)):
            node = Node(back, saved)
            node.module = self.module
            out.node = node
            out.needs = True
            self.nodes.append(node)
        return out

    def backward(self, nodes: list[Node]) -> None:
        """Walk nodes back, the last first, freeing what each saved when its gradients are made."""
        kind, self.kind = self.kind, TEMPORARY
        while nodes:
            node = nodes.pop()
            grad, node.grad = node.grad, None
            if grad is not None:
                self.module = node.module
                self._hand_on(node, grad)
            node.saved = ()
            node.back = _nothing
        self.kind = kind

    def _hand_on(self, node: Node, grad: Block) -> None:
        for target, block in node.back(grad):
            if target is not None:
                target.take(block)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Record no nodes inside."""
        before, self.records = self.records, False
        try:
            yield
        finally:
            self.records = before

    def leave_autocast(self) -> None:
        """Forget the casts that autocast keeps until it ends."""
        self.casts.clear()


class Block:
    """A storage; its bytes count until the last reference to it is gone."""

    __slots__ = ("part", "size", "tape")

    def __init__(self, tape: Tape, size: float, part: str) -> None:
        """Allocate: sizes are rounded up as the allocator does."""
        self.tape = tape
        self.size = -(-int(size) // ROUND) * ROUND
        self.part = part
        tape.grow(self.size, part)

    def __del__(self) -> None:
        """Free."""
        self.tape.shrink(self.size, self.part)

    def move(self, part: str) -> None:
        """Count as another part from now on."""
        parts = self.tape.parts
        parts[self.part] -= self.size
        parts[part] = parts.get(part, 0) + self.size
        self.part = part


class Value:
    """A tensor: a block seen as rows x columns, and how it came about."""

    __slots__ = ("block", "cols", "needs", "node", "rows", "width")

    def __init__(self, block: Block, rows: int, cols: float, width: int) -> None:
        """Hold a block; nothing needs a gradient yet."""
        self.block = block
        self.rows = rows
        self.cols = cols
        self.width = width
        self.node: Node | None = None
        self.needs = False

    @property
    def size(self) -> float:
        """Return the bytes that the values take."""
        return self.rows * self.cols * self.width

    def view(self, cols: float | None = None) -> Value:
        """Return the same storage as other columns, leading to the same node."""
        other = Value(self.block, self.rows, self.cols if cols is None else cols, self.width)
        other.node, other.needs = self.node, self.needs
        return other


class Node:
    """One operator of forward: what it saved, how it hands gradients on, and its own gradient."""

    __slots__ = ("back", "grad", "module", "saved")

    def __init__(self, back: Back, saved: Sequence[Block]) -> None:
        """Hold what backward needs."""
        self.back = back
        self.saved = tuple(saved)
        self.grad: Block | None = None
        self.module = ""

    def take(self, grad: Block) -> None:
        """Receive a gradient: a second is added in place, unless others hold the first as well."""
        held = self.grad
        if held is None:
            self.grad = grad
        elif sys.getrefcount(held) > _HELD_ONCE:
            self.grad = Block(held.tape, held.size, held.part)


class Taker(Protocol):
    """Who receives gradients of several weights in their place."""

    def take(self, of: object, grad: Block) -> None:
        """Receive the gradient of a weight."""


class Param:
    """A weight: how many values of how many bytes, whether it trains, its gradient.

    `quantised` weights are unpacked into the dtype of the products for each use. `stored` is the
    width between steps, where a weight is used in another. `share` is over how many ranks a
    gradient is split as soon as it is there; a `unit` takes it in the weight's place. `tied` says
    that two modules use it: autograd holds the first gradient back and adds both out of place.
    """

    __slots__ = (
        *("count", "grad", "name", "pending", "quantised"),
        *("share", "stored", "tied", "trains", "unit", "width"),
    )

    def __init__(
        self,
        name: str,
        count: int,
        width: int,
        *,
        trains: bool,
        quantised: bool = False,
        stored: int | None = None,
    ) -> None:
        """Describe a weight."""
        self.name = name
        self.count = count
        self.width = width
        self.trains = trains
        self.quantised = quantised
        self.stored = width if stored is None else stored
        self.share = 1
        self.tied = False
        self.pending: Block | None = None
        self.unit: Taker | None = None
        self.grad: Block | None = None

    def take(self, grad: Block) -> None:
        """Receive a gradient: the first stays, later ones are added to it in place."""
        if self.tied:
            grad.move(GRADIENT)
            if self.pending is None:
                self.pending = grad
                return
            grad, self.pending = Block(grad.tape, grad.size, GRADIENT), None
        if self.unit is not None:
            self.unit.take(self, grad)
            return
        if self.grad is not None:
            return
        if self.share > 1:
            grad = Block(grad.tape, grad.size / self.share, GRADIENT)
        grad.move(GRADIENT)
        self.grad = grad


def _nothing(grad: Block) -> Sequence[Handed]:
    del grad
    return ()
