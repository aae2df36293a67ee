"""What an operator returns: torch's own meta kernels say it, and each answer is kept.

An operator that is not composite reaches the fake card with tensors of certain sizes, strides and
dtypes. The same operator on 'meta' tensors gives those of its results; a result that *is* one
of the arguments, or sees the same storage, is told apart from one that needs memory.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch._ops import OpOverload

    from oomdoctor.worker.fake.memory import Geometry

META = torch.device("meta")


class Fresh(NamedTuple):
    """A result with a storage of its own."""

    geometry: Geometry


class Same(NamedTuple):
    """A result that is the tensor argument of this number, in order of appearance."""

    argument: int


class View(NamedTuple):
    """A result that sees the storage of the tensor argument of this number."""

    argument: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class Plain(NamedTuple):
    """A result that is no tensor."""

    value: object


class Many(NamedTuple):
    """Several results."""

    parts: tuple[Any, ...]
    kind: type


GROUPED = "aten::_grouped_mm"


class Shapes:
    """Results of operators by their arguments, asked of torch once for each kind of call."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self._known: dict[object, object] = {}

    def of(
        self, operator: OpOverload, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> object:
        """Return what the operator returns: Fresh, Same, View, Plain, Many of these, or None."""
        try:
            key = (operator, _key(arguments), _key(tuple(named.items())))
            found = self._known.get(key)
        except TypeError:  # an argument that cannot be a key: asked anew each time
            return self._ask(operator, arguments, named)
        if found is None:
            found = self._known[key] = self._ask(operator, arguments, named)
        return found

    def outputs(
        self, operator: OpOverload, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> list[torch.Size]:
        """Return the sizes that an operator gives the tensors it is to write into by name."""
        twins = tuple(_meta(one, []) for one in arguments)
        named_twins = {name: _meta(one, []) for name, one in named.items()}
        with warnings.catch_warnings():  # an output that is resized is worth a warning to torch
            warnings.simplefilter("ignore")
            operator(*twins, **named_twins)
        return [
            named_twins[argument.name].shape
            for argument in operator._schema.arguments
            if argument.alias_info is not None and argument.alias_info.is_write
        ]

    def _ask(
        self, operator: OpOverload, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> object:
        if operator._schema.name == GROUPED and arguments[0].dtype != torch.bfloat16:
            return _grouped(operator, arguments, named)
        seen: list[torch.Tensor] = []
        twins = tuple(_meta(one, seen) for one in arguments)
        result = operator(*twins, **{name: _meta(one, seen) for name, one in named.items()})
        return _describe(result, seen)


def _grouped(operator: OpOverload, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> object:
    """Return what a product of groups returns in another dtype than the one that meta asks for.

    On a card such products run group by group into a result of the same layout.
    """
    seen: list[torch.Tensor] = []
    plain = [_meta(one, seen) for one in arguments]
    twins = [_in_bf16(one) for one in plain]
    kept = {name: _meta(one, seen) for name, one in named.items() if name != "out_dtype"}
    result = operator(*twins, **kept).to(named.get("out_dtype") or plain[0].dtype)
    return _describe(result, seen)


def _in_bf16(value: Any) -> Any:
    floats = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.to(torch.bfloat16) if floats else value


def _key(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return (value.shape, value.stride(), value.dtype)
    if isinstance(value, (list, tuple)):
        return tuple([_key(one) for one in value])
    # 1, 1.0 and True are equal as keys, yet promote dtypes differently
    return (value, type(value))


def _meta(value: Any, seen: list[torch.Tensor]) -> Any:
    """Return the argument with meta tensors, and collect these."""
    if isinstance(value, torch.Tensor):
        twin = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=META)
        seen.append(twin)
        return twin
    if isinstance(value, list):
        return [_meta(one, seen) for one in value]
    if isinstance(value, tuple):
        return tuple(_meta(one, seen) for one in value)
    if isinstance(value, torch.device):
        return META
    return None if isinstance(value, torch.Generator) else value


def _describe(result: object, seen: list[torch.Tensor]) -> object:
    if isinstance(result, torch.Tensor):
        for number, twin in enumerate(seen):
            if result is twin:
                return Same(number)
        storage = result.untyped_storage()._cdata
        for number, twin in enumerate(seen):
            if twin.untyped_storage()._cdata == storage:
                offset = result.storage_offset()
                return View(number, tuple(result.shape), result.stride(), offset)
        return Fresh((tuple(result.shape), result.stride(), result.dtype))
    if isinstance(result, (list, tuple)):
        return Many(tuple(_describe(one, seen) for one in result), type(result))
    return Plain(result)


def build(
    described: object,
    tensors: list[torch.Tensor],
    *,
    make: Callable[[Geometry], torch.Tensor],
    view: Callable[[torch.Tensor, View], torch.Tensor],
) -> object:
    """Return the results that were described, with `make` for new storages."""
    match described:
        case Fresh(geometry):
            return make(geometry)
        case Same(number):
            return tensors[number]
        case View(number):
            return view(tensors[number], described)
        case Many(parts, kind):
            built = [build(one, tensors, make=make, view=view) for one in parts]
            return built if kind is list else tuple(built)
        case Plain(value):
            return value
    return None


def tensors_in(value: object, found: list[torch.Tensor]) -> list[torch.Tensor]:
    """Add the tensors of an argument, in the order in which `Shapes` numbers them."""
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for one in value:
            tensors_in(one, found)
    return found
