"""Memory that CUDA kernels take for themselves, which no result of an operator shows.

The table `KERNELS` says what each operator takes, by the name of the operator; where it hangs on
the card, `TILES` and `CUBLAS_WORKSPACE` have a row per architecture. All sizes and their order
were compared with torch 2.13's own host code on a card that only counts.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.record import NamedTuple
from oomdoctor.worker.fake import attention_workspaces, sorting
from oomdoctor.worker.fake.reductions import Reduction, buffers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from torch._ops import OpOverload

    from oomdoctor.model.job import CardSpec
    from oomdoctor.worker.fake.tracker import Tracker

GEMMS = frozenset({"mm.out", "addmm.out", "bmm.out", "baddbmm.out", "_addmm_activation.out"})
CUBLAS_WORKSPACE = {8: 4096 * 2 * 1024 + 16 * 8 * 1024}
CUBLAS_HOPPER = 32 << 20
NORM_CHUNK = 65536  # elements that one block of `_foreach_norm` takes
WELFORD_BYTES = 16  # mean, second moment and counts of a variance
INDEXED_BYTES = 16  # a value beside its index


class Call(NamedTuple):
    """One run of an operator."""

    name: str
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]
    result: Any
    card: CardSpec

    def argument(self, place: int, name: str, default: object = None) -> Any:
        """Return an argument by its place or its name."""
        if place < len(self.arguments):
            return self.arguments[place]
        return self.named.get(name, default)


class Workspaces:
    """Writes down what kernels take; cuBLAS keeps a workspace for each thread that called it."""

    def __init__(
        self, tracker: Tracker, card: CardSpec, delegates: Mapping[str, str] | None = None
    ) -> None:
        """Account to a tracker for a card; `delegates` are the operators that write into tensors.

        They are given by those that make their results first, and then do the same.
        """
        self._tracker = tracker
        self._delegates = delegates or {}
        self.card = card
        self._handles: set[int] = set()
        self._names: dict[OpOverload, str] = {}
        self._held: list[int] = []
        self.unknown: dict[str, None] = {}

    @contextmanager
    def scratch(self, name: str) -> Iterator[Scratch]:
        """Give a kernel something to take from while it makes its results."""
        scratch = Scratch(self._tracker, f"{name} (workspace)")
        yield scratch
        scratch.give_all()

    def call(self, name: str, arguments: tuple[Any, ...]) -> Call:
        """Describe a call whose results are not there yet."""
        return Call(name, arguments, {}, None, self.card)

    def _name(self, operator: OpOverload) -> str:
        name = self._names.get(operator)
        if name is None:
            schema = operator._schema
            name = schema.name.removeprefix("aten::")
            if schema.overload_name:
                name = f"{name}.{schema.overload_name}"
            # a CUDA build calls `mm` where a CPU build makes the result and calls `mm.out`
            name = self._names[operator] = self._delegates.get(name, name)
        return name

    def before(self, operator: OpOverload, arguments: tuple[Any, ...]) -> None:
        """Account for what is taken before the results are made."""
        name = self._name(operator)
        if name in GEMMS and self._writes(operator):
            self._cublas()
        elif name == "_foreach_norm.Scalar":
            size = _norm_bytes(arguments[0])
            self._held = [self._tracker.take(size, f"aten.{name} (partial results)")]

    def _writes(self, operator: OpOverload) -> bool:
        """Say whether an operator writes into a tensor that it is given."""
        return any(
            argument.alias_info is not None and argument.alias_info.is_write
            for argument in operator._schema.arguments
        )

    def _cublas(self) -> None:
        thread = threading.get_ident()
        if thread in self._handles:
            return
        self._handles.add(thread)
        major = self.card.capability[0]
        size = CUBLAS_WORKSPACE[8] if major != 9 else CUBLAS_HOPPER
        self._tracker.take(size, "cuBLAS workspace")

    def after(
        self,
        operator: OpOverload,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        result: object,
    ) -> None:
        """Account for what is taken while the results are written."""
        name = self._name(operator)
        if name in GEMMS:  # the result was made before
            self._cublas()
        kernel = KERNELS.get(name)
        if kernel is not None:
            scratch = Scratch(self._tracker, f"aten.{name} (workspace)")
            kernel(Call(name, arguments, named, result, self.card), scratch)
            scratch.give_all()
        while self._held:
            self._tracker.free(self._held.pop())


class Scratch:
    """What one kernel takes; what it has not given back at its end is given back in reverse."""

    def __init__(self, tracker: Tracker, name: str) -> None:
        """Take from a tracker under the name of the operator."""
        self._tracker = tracker
        self._name = name
        self._taken: list[int] = []

    def take(self, size: int) -> int:
        """Take so many bytes and return the number of the allocation."""
        number = self._tracker.take(size, self._name)
        self._taken.append(number)
        return number

    def give(self, *numbers: int) -> None:
        """Give some back, in this order."""
        for number in numbers:
            self._taken.remove(number)
            self._tracker.free(number)

    def use(self, size: int) -> None:
        """Take some and give it back at once."""
        self.give(self.take(size))

    def give_all(self) -> None:
        """Give back what is left."""
        while self._taken:
            self._tracker.free(self._taken.pop())


def _norm_bytes(tensors: list[torch.Tensor]) -> int:
    """Return the bytes of `_foreach_norm`'s partial results: a place for each block."""
    most = max((-(-one.numel() // NORM_CHUNK) for one in tensors), default=0)
    width = 8 if tensors and tensors[0].dtype == torch.float64 else 4
    return len(tensors) * most * width


def _reduce(call: Call, scratch: Scratch, partial: int, dimensions: Any) -> None:
    """Take the buffers of a reduction over some dimensions (None: over all)."""
    source: torch.Tensor = call.arguments[0]
    rank = source.dim()
    if isinstance(dimensions, int):
        dimensions = (dimensions,)
    gone = {one % rank for one in dimensions} if dimensions and rank else set(range(rank))
    output = call.result[0] if isinstance(call.result, tuple) else call.result
    width = source.itemsize
    adds_up = call.name.startswith(("sum", "prod")) and source.dtype != output.dtype
    if adds_up and not (source.is_floating_point() and output.dtype == torch.float32):
        scratch.take(source.numel() * output.itemsize)  # the input in the dtype of the sum
        width = output.itemsize
    reduction = Reduction(
        tuple(source.shape),
        source.stride(),
        tuple(place in gone for place in range(rank)),
        width,
        partial,
        source.storage_offset(),
    )
    for size in buffers(reduction, call.card.processors):
        scratch.take(size)


def _accumulating(call: Call) -> int:
    """Return the width in which sums are kept."""
    output = call.result[0] if isinstance(call.result, tuple) else call.result
    return max(4, output.itemsize) if output.is_floating_point() else 8


def _over(place: int, partial: Callable[[Call], int]) -> Callable[[Call, Scratch], None]:
    """Return a kernel that reduces over the dimensions which argument `place` names."""

    def kernel(call: Call, scratch: Scratch) -> None:
        dimensions = call.argument(place, "dim") if place else None
        _reduce(call, scratch, partial(call), dimensions)

    return kernel


def _own(call: Call) -> int:
    width: int = call.arguments[0].itemsize
    return width


def _one(_call: Call) -> int:
    return 1


def _welford(_call: Call) -> int:
    return WELFORD_BYTES


def _indexed(_call: Call) -> int:
    return INDEXED_BYTES


def _scalar_base(call: Call, scratch: Scratch) -> None:
    """Take the base of `2 ** tensor`, which becomes a tensor on the card."""
    if call.arguments[0] != 1:
        scratch.take(8)


def _softmax_backward(call: Call, scratch: Scratch) -> None:
    """Take the product of gradient and output."""
    gradient, output = call.arguments[:2]
    dtype = torch.promote_types(gradient.dtype, output.dtype)
    scratch.take(output.numel() * dtype.itemsize)


def _group_norm(call: Call, scratch: Scratch) -> None:
    """Take sums of groups and factors of channels."""
    source, batch, channels, groups = call.arguments[0], *(call.arguments[n] for n in (3, 4, 6))
    width = 8 if source.dtype == torch.float64 else 4
    for size in (groups, groups, channels, channels):
        scratch.take(batch * size * width)


def _group_norm_backward(call: Call, scratch: Scratch) -> None:
    """Take sums of channels, and factors of groups."""
    batch, channels, groups = (call.arguments[n] for n in (5, 6, 8))
    first = scratch.take(batch * channels * 4)
    second = scratch.take(batch * channels * 4)
    third, fourth = scratch.take(batch * groups * 4), scratch.take(batch * groups * 4)
    fifth = scratch.take(batch * channels * 4)
    scratch.give(fourth, third, fifth, second, first)


KERNELS: dict[str, Callable[[Call, Scratch], None]] = {
    **dict.fromkeys(("sum.IntList_out", "mean.out"), _over(1, _accumulating)),
    **dict.fromkeys(("nansum.out", "prod.int_out"), _over(1, _accumulating)),
    "prod": _over(0, _accumulating),
    "linalg_vector_norm.out": _over(2, _accumulating),
    **dict.fromkeys(("norm.out", "norm.dtype_out"), _over(2, _accumulating)),
    **dict.fromkeys(("amax.out", "amin.out"), _over(1, _own)),
    **dict.fromkeys(("max", "min"), _over(0, _own)),
    **dict.fromkeys(("all.out", "any.out", "all.dims_out", "any.dims_out"), _over(1, _one)),
    **dict.fromkeys(("all.all_out", "any.all_out"), _over(0, _one)),
    **dict.fromkeys(("argmax.out", "argmin.out"), _over(1, _indexed)),
    **dict.fromkeys(("max.dim_max", "min.dim_min"), _over(1, _indexed)),
    **dict.fromkeys(("var.correction", "std.correction"), _over(1, _welford)),
    **dict.fromkeys(("var_mean.correction", "std_mean.correction"), _over(1, _welford)),
    "pow.Scalar_out": _scalar_base,
    **dict.fromkeys(
        ("_softmax_backward_data.out", "_log_softmax_backward_data.none"), _softmax_backward
    ),
    "native_group_norm": _group_norm,
    "native_group_norm_backward": _group_norm_backward,
    **sorting.KERNELS,
    **attention_workspaces.KERNELS,
}
"""What the kernels of an operator take, by its name in torch's list of functions."""
