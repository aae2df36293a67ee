"""Small values that follow from what the host sent, computed on the host beside the kernels.

A program asks a card small questions: is a mask all ones, how many labels count, which rows are
selected. Here the operators between a copy to the card and such a question also run on the host,
where all that goes in is known, and what comes out is noted as the card's memory. The kernel itself
is called as ever, so nothing changes in what is allocated. What is not known stays so, and what lay
in memory that was given back is forgotten. What stands for unknown values where a program steers
itself by them, unknown_values.py says.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from . import unknown_values
from .memory import FLOAT_LIMIT, Card, limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Library: TypeAlias = Any
"""Something of torch, which this file must not import before the program does."""

COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
BY_ELEMENT = (
    *(f"{name}.{kind}" for name in COMPARED for kind in ("Scalar", "Tensor")),
    *("logical_not", "logical_and", "logical_or", "bitwise_not", "isin.Tensor_Tensor"),
    *("bitwise_and.Tensor", "bitwise_or.Tensor", "masked_fill.Scalar", "rsub.Scalar"),
    *("add.Tensor", "sub.Tensor", "mul.Tensor", "where.self"),
    *("minimum", "maximum", "remainder.Scalar", "remainder.Tensor", "floor_divide"),
    *("bitwise_xor.Tensor", "logical_xor", "gather", "index_select", "roll", "sort", "sort.stable"),
    *("cumsum", "cat", "clone", "index.Tensor", "constant_pad_nd", "flip", "tril", "triu"),
)
OF_MANY = (
    *("sum", "sum.dim_IntList", "all", "all.dim", "any", "any.dim", "max", "min"),
    *("argmax", "argmin", "amax", "amin", "max.dim", "min.dim", "topk"),
)
OVERWRITES = ("copy_", "fill_.Scalar", "fill_.Tensor", "zero_")
IN_PLACE = (
    *OVERWRITES,
    *("masked_fill_.Scalar", "add_.Tensor", "sub_.Tensor", "mul_.Tensor", "index_put_"),
    *("scatter_add_", "scatter_.src", "scatter_.value", "index_copy_", "index_fill_.int_Scalar"),
)
FILLED = ("arange.start_out",)
SELECTS = ("nonzero", "_unique2", "repeat_interleave.Tensor")
CHOSEN = ("multinomial",)
STEERING = frozenset((*unknown_values.SIZES, *unknown_values.CHOICES, *unknown_values.NUMBER_TESTS))
"""What programs ask of activations to steer themselves by it."""
KEEP: list[Library] = []
"""What torch only borrows: its library of operators ends with this list."""


class Follower:
    """Stands for one operator: runs its kernel, and the same on the host."""

    def __init__(self, card: Card, name: str) -> None:
        """Find the kernel and the operator."""
        torch = card.torch
        packet, _, overload = name.partition(".")
        self.card = card
        self.name = name
        self.kernel = torch.library.get_kernel(f"aten::{name}", "CUDA")
        self.operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
        schema = self.operator._schema.arguments  # noqa: SLF001 - nothing public says it
        self.takes_tensor = [str(one.type) == "Tensor" for one in schema]

    def run(self, keys: Library, *arguments: Library, **named: Library) -> Library:
        """Run both."""
        arguments = self.with_tensors(arguments)
        is_activation = self.is_activation(arguments[0])
        known = None if is_activation else self.values(arguments, named)
        result = self.kernel.call_boxed(keys, *arguments, **named)
        if is_activation and self.name not in STEERING:
            return result  # most of a program's work: nothing was known, nothing is asked
        if known is None:
            return self.assumed(arguments, result)
        if self.name in SELECTS:
            result = _each(result, lambda one, at: one.new_empty(_at(known, at).shape))
        self.note(result, known)
        return result

    def assumed(self, arguments: tuple[Library, ...], result: Library) -> Library:
        """Note what stands for a result that nobody knows, and return the result."""
        torch, card = self.card.torch, self.card
        verdict = unknown_values.is_number_test(self.name, arguments)
        sizes = unknown_values.SIZES.get(self.name)
        choice = unknown_values.CHOICES.get(self.name)
        if verdict is not None:
            card.fill(result, verdict)
        elif sizes is not None:
            constant = card.constants.get(arguments[0].data_ptr())
            parts, said = sizes(torch, arguments, constant)
            result = _each(result, lambda one, at: one.new_empty(parts[at][0]))
            self.note(result, tuple(values for _, values in parts))
            if constant is None:
                card.report(said)
        elif choice is not None and (found := choice(torch, arguments, result)) is not None:
            self.note(result, found[0])
            card.report(found[1])
        else:
            self.note(result, None)
        return result

    def note(self, result: Library, known: Library) -> None:
        """Note the values of what an operator gave: a tensor or several."""
        parts = result if isinstance(result, (tuple, list)) else (result,)
        for at, one in enumerate(parts):
            self.card.write(one, _at(known, at))

    def is_activation(self, value: Library) -> bool:
        """Say at once whether the operator works on what nobody can know."""
        return (
            isinstance(value, self.card.torch.Tensor)
            and value.is_floating_point()
            and value.numel() > FLOAT_LIMIT
            and not self.name.startswith("all")
        )

    def with_tensors(self, arguments: tuple[Library, ...]) -> tuple[Library, ...]:
        """Return the arguments with numbers as tensors again where the operator takes such.

        A number in Python (`x * 2`) reaches an operator as a tensor that promotes no type but one
        of a lower kind, and comes here as a number. A tensor of the promoted type does the same.
        """
        torch = self.card.torch
        numbers = [
            wanted and isinstance(one, (bool, int, float))
            for wanted, one in zip(self.takes_tensor, arguments, strict=False)
        ]
        if not any(numbers):
            return arguments
        other = next((one for one in arguments if isinstance(one, torch.Tensor)), None)
        return tuple(
            self.card.new(
                "tensor", one, dtype=None if other is None else torch.result_type(other, one)
            )
            if number
            else one
            for number, one in zip(numbers, arguments, strict=False)
        )

    def values(self, arguments: tuple[Library, ...], named: dict[str, Library]) -> Library | None:
        """Return what the operator gives for known values."""
        if not all(self.is_small(one) for one in (*arguments, *named.values())):
            return None
        host = [self.on_host(one) for one in arguments]
        host_named = {key: self.on_host(one) for key, one in named.items() if key != "out"}
        if self.name in FILLED:
            out = named["out"]
            host_named["out"] = self.card.new("empty", out.shape, dtype=out.dtype)
        if self.name in OVERWRITES:
            # what lay there is of no concern
            host[0] = self.card.new("empty", arguments[0].shape, dtype=arguments[0].dtype)
        if any(one is Ellipsis for one in (*host, *host_named.values())):
            if self.name.startswith("all"):
                self.card.report("all() of values that nobody knows: true")
                return self.card.new("tensor", True)  # noqa: FBT003 - the value, not a switch
            return None
        return self.operator(*host, **host_named)

    def is_small(self, value: Library) -> bool:
        """Say whether following this argument costs little; answers at once for activations."""
        if isinstance(value, self.card.torch.Tensor):
            return self.name.startswith("all") or (
                value.numel() * value.element_size() <= limit(value)
            )
        return not isinstance(value, (list, tuple)) or all(map(self.is_small, value))

    def on_host(self, value: Library) -> Library:
        """Return an argument with tensors on the host; an ellipsis where one is not known."""
        torch = self.card.torch
        if isinstance(value, torch.Tensor):
            found = self.card.read(value)
            return Ellipsis if found is None else found.clone()
        if isinstance(value, (list, tuple)) and any(isinstance(one, torch.Tensor) for one in value):
            found_all = [self.on_host(one) for one in value]
            return Ellipsis if Ellipsis in map(_plain, found_all) else found_all
        return torch.device("cpu") if isinstance(value, torch.device) else value


def _plain(value: Library) -> Library:
    """Return an ellipsis, or None for all else: tensors must not be compared with one."""
    return value if value is Ellipsis else None


def _each(result: Library, make: Callable[[Library, int], Library]) -> Library:
    """Return a tensor, or each of several, made anew."""
    if isinstance(result, (tuple, list)):
        return tuple(make(one, at) for at, one in enumerate(result))
    return make(result, 0)


def _at(known: Library, at: int) -> Library:
    return known[at] if isinstance(known, (tuple, list)) else known


def follow_known_values(torch: Library) -> None:
    """Let the operators that small questions go through be followed; torch 2.9 and later."""
    if not hasattr(torch.library, "get_kernel"):
        return
    card = Card(torch)
    library = torch.library.Library("aten", "IMPL")
    KEEP.append(library)
    for name in names():
        try:
            follower = Follower(card, name)
        except (AttributeError, RuntimeError):  # another version lacks it
            continue
        library.impl(name, partial(follower.run), "CUDA", with_keyset=True, allow_override=True)


def names() -> Iterable[str]:
    """Return the operators that are followed."""
    return (*BY_ELEMENT, *OF_MANY, *IN_PLACE, *FILLED, *SELECTS, *CHOSEN)
