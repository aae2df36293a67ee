"""The operators of the fake card: what torch calls where a CUDA kernel would run.

One fallback hears every operator that has no kernel for 'cuda' in this build; where torch has a
general way that a CUDA build does not take (most `_foreach_` operators), or has CUDA kernels of its
own (a CUDA build without a card), the fallback is registered for that operator by name.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.fake.delegates import functions
from oomdoctor.worker.fake.shapes import Shapes, View, build, tensors_in
from oomdoctor.worker.fake.wrappers import Wrappers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch._ops import OpOverload

    from oomdoctor.worker.fake.memory import FakeMemory, Geometry
    from oomdoctor.worker.fake.values import Values
    from oomdoctor.worker.fake.workspaces import Workspaces

CPU_KERNELS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
VIEWS = (
    *("as_strided", "view", "_reshape_alias", "unfold", "view_as_real", "view_as_complex"),
    *("set_.source_Storage", "set_.source_Storage_storage_offset", "set_.source_Tensor", "set_"),
)
"""What changes sizes, strides and storages alone: torch's CPU kernels do it for any device."""
ALSO = ("copy_", "convolution", "convolution_overrideable", "_fused_sdp_choice")


class Kernels:
    """All operators on the fake card.

    `special` holds those that are written out: name (without "aten.") -> function of the
    arguments. `written` of an operator tells which arguments it writes and returns.
    """

    def __init__(self, memory: FakeMemory, values: Values, workspaces: Workspaces) -> None:
        """Make the operators of a card with this memory."""
        self.memory = memory
        self.values = values
        self.workspaces = workspaces
        self.shapes = Shapes()
        self.wrappers = Wrappers()
        self.special: dict[str, Callable[..., object]] = {}
        self._plans: dict[OpOverload, Callable[..., object]] = {}
        self.failed: Exception | None = None  # what C++ may lose on its way up
        self._texts: dict[OpOverload, str] = {}
        self._libraries: list[torch.library.Library] = []

    def install(self) -> None:
        """Register the operators with torch."""
        everything = torch.library.Library("_", "IMPL")
        everything.fallback(self.call, "CUDA")
        aten = torch.library.Library("aten", "IMPL")
        self._libraries += [everything, aten]
        for name in cuda_operators():
            aten.impl(name, self._kernel(name), "CUDA", allow_override=True)

    def remove(self) -> None:
        """Take the operators out of torch again."""
        for library in self._libraries:
            library._destroy()
        self._libraries.clear()

    def override(self, name: str, function: Callable[..., object], key: str = "CUDA") -> None:
        """Let a function of ours run where torch has a composite operator."""
        library = torch.library.Library(name.split("::", maxsplit=1)[0], "IMPL")

        def kernel(*arguments: Any, **named: Any) -> object:
            self.wrappers.drop()
            result = function(*arguments, **named)
            self.wrappers.saw((*arguments, *named.values(), result))
            return result

        library.impl(name.split("::")[1], kernel, key, allow_override=True)
        self._libraries.append(library)

    def _kernel(self, name: str) -> Callable[..., object]:
        operator = overload(name)

        def kernel(*arguments: Any, **named: Any) -> object:
            return self.call(operator, *arguments, **named)

        return kernel

    def call(self, operator: OpOverload, *arguments: Any, **named: Any) -> object:
        """Run one operator."""
        wrappers = self.wrappers
        wrappers.drop()
        plan = self._plans.get(operator)
        if plan is None:
            plan = self._plans[operator] = self._plan(operator)
        try:
            result = plan(operator, arguments, named)
        except Exception as error:
            self.failed = error
            raise
        wrappers.saw((*arguments, *named.values()))
        wrappers.saw((result,))
        return result

    def text(self, operator: OpOverload) -> str:
        """Return an operator's full name: aten.mm.default."""
        text = self._texts.get(operator)
        if text is None:
            text = self._texts[operator] = str(operator)
        return text

    def _plan(self, operator: OpOverload) -> Callable[..., object]:
        """Decide by an operator's name and schema how it is run."""
        name = short_name(operator)
        if name in self.special:
            function = self.special[name]
            return lambda _operator, arguments, named: function(*arguments, **named)
        if name in VIEWS:
            return _redispatch
        if torch.Tag.dynamic_output_shape in operator.tags:
            return self._made_on_host
        written = [
            place
            for place, argument in enumerate(operator._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        if not written:
            return self.make
        returns = len(operator._schema.returns)
        if returns not in (0, len(written)):
            return self.make  # some results are new: only the meta kernel tells which
        names = [operator._schema.arguments[place].name for place in written]
        return _Writer(self, written, names, returns=bool(returns)).run

    def make(
        self, operator: OpOverload, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> object:
        """Run an operator whose results are new or views."""
        try:
            described = self.shapes.of(operator, arguments, named)
        except NotImplementedError:
            return self._made_on_host(operator, arguments, named)
        tensors = tensors_in((arguments, tuple(named.values())), [])
        name = self.text(operator)
        self.workspaces.before(operator, arguments)

        def make(geometry: Geometry) -> torch.Tensor:
            return self.memory.new(geometry, name)

        result = build(described, tensors, make=make, view=view_of)
        self.workspaces.after(operator, arguments, named, result)
        self.values.follow(operator, arguments, named, result)
        return result

    def _made_on_host(
        self, operator: OpOverload, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> object:
        """Run an operator for which torch has no meta kernel: its shapes hang on values."""
        values = self.values.on_host(operator, arguments, named)
        name = self.text(operator)
        results = []
        for one in (values,) if isinstance(values, torch.Tensor) else values:
            geometry = (tuple(one.shape), one.stride(), one.dtype)
            results.append(self.memory.new(geometry, name))
            self.values.learn(results[-1], one)
        return results[0] if isinstance(values, torch.Tensor) else tuple(results)

    def finish(
        self,
        operator: OpOverload,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        result: object,
    ) -> None:
        """Account for what an operator does besides its results."""
        self.workspaces.after(operator, arguments, named, result)
        self.values.follow(operator, arguments, named, result)


class _Writer:
    """An operator that writes into tensors it was given, and returns just these."""

    def __init__(
        self, kernels: Kernels, places: Sequence[int], names: Sequence[str], *, returns: bool
    ) -> None:
        self._kernels = kernels
        self._where = tuple(zip(places, names, strict=True))
        self._returns = returns

    def run(
        self, operator: OpOverload, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> object:
        """Run the operator."""
        count = len(arguments)
        written = [
            arguments[place] if place < count else named.get(name) for place, name in self._where
        ]
        kernels = self._kernels
        first = written[0]
        if isinstance(first, torch.Tensor):
            if first.numel() == 0 and self._where[0][0] >= count:
                self._size_outputs(operator, arguments, named, written)
            kernels.memory.name(first, kernels.text(operator))
        kernels.workspaces.before(operator, arguments)
        result = written[0] if len(written) == 1 else tuple(written)
        kernels.finish(operator, arguments, named, result)
        return result if self._returns else None

    def _size_outputs(
        self,
        operator: OpOverload,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        written: list[Any],
    ) -> None:
        """Give outputs that were passed empty the size of the result, as `out=` does."""
        for output, sizes in zip(
            written, self._kernels.shapes.outputs(operator, arguments, named), strict=True
        ):
            if output.numel() == 0:
                output.resize_(sizes)


def _redispatch(
    operator: OpOverload, arguments: tuple[Any, ...], named: Mapping[str, Any]
) -> object:
    """Run torch's own kernel for the CPU: it reads no values."""
    return operator.redispatch(CPU_KERNELS, *arguments, **named)


def view_of(tensor: torch.Tensor, view: View) -> torch.Tensor:
    """Return a view of a tensor's storage."""
    return tensor.as_strided(view.sizes, view.strides, view.offset)


def overload(name: str) -> OpOverload:
    """Return an operator of torch by its name (`add.out`, `relu`)."""
    packet, _, which = name.partition(".")
    found: OpOverload = getattr(getattr(torch.ops.aten, packet), which or "default")
    return found


def short_name(operator: OpOverload) -> str:
    """Return the name as torch's list of functions has it: `add.out`, `relu`."""
    namespace, _, name = operator._schema.name.partition("::")
    full = f"{name}.{operator._schema.overload_name}" if operator._schema.overload_name else name
    return full if namespace == "aten" else f"{namespace}::{full}"


@cache
def cuda_operators() -> list[str]:
    """Return the operators for which the fallback is not asked by torch itself.

    In a CPU build these are the ones with CUDA kernels that also have a general way; in a CUDA
    build all with CUDA kernels, but for those that only look at sizes.
    """
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if torch.version.cuda is not None:
        names = [one for one in declared_for_cuda() if one not in VIEWS]
        return [
            *(name for name in names if has(f"aten::{name}", "CUDA")),
            *(name for name in ALSO if name not in names),
        ]
    general = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
    names = [
        name for name in declared_for_cuda() if any(has(f"aten::{name}", key) for key in general)
    ]
    return [*names, *(name for name in ALSO if name not in names)]


def declared_for_cuda() -> list[str]:
    """Return the operators that torch's list of functions gives CUDA kernels."""
    names: list[str] = []
    name = ""
    for line in functions():
        if line.startswith("- func: "):
            name = line[8 : line.index("(")]
        elif (name and "CUDA" in line and re.match(r"\s+[\w, ]*\bCUDA\b[\w, ]*:", line)) or (
            name and "structured_delegate" in line
        ):
            names.append(name)
            name = ""
    return names
