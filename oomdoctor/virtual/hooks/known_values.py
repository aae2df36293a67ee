"""Small values that follow from what the host sent, computed on the host beside the kernels.

A program asks a card small questions: is a mask all ones, how many labels count, which rows are
selected. Here the operators between a copy to the card and such a question also run on the host,
where all that goes in is known, and what comes out is noted as the card's memory. The kernel itself
is called as ever, so nothing changes in what is allocated. What is not known stays so, and what lay
in memory that was given back is forgotten. `all` of something unknown is true, since it asks
whether all is well.
"""

from __future__ import annotations

import ctypes
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Library: TypeAlias = Any
"""Something of torch, which this file must not import before the program does."""

LIMIT = 1 << 20  # bytes, as VC_SMALL of csrc/virtual.h
MOST_ROWS = 4096
FLOAT_LIMIT = 4096  # bytes; floats are counters, scales and flags, not activations
COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
BY_ELEMENT = (
    *(f"{name}.{kind}" for name in COMPARED for kind in ("Scalar", "Tensor")),
    *("logical_not", "logical_and", "logical_or", "bitwise_not", "isin.Tensor_Tensor"),
    *("bitwise_and.Tensor", "bitwise_or.Tensor", "masked_fill.Scalar", "rsub.Scalar"),
    *("add.Tensor", "sub.Tensor", "mul.Tensor", "where.self"),
    *("cumsum", "cat", "clone", "index.Tensor", "constant_pad_nd", "flip", "tril", "triu"),
)
OF_MANY = (
    *("sum", "sum.dim_IntList", "all", "all.dim", "any", "any.dim", "max", "min"),
    *("argmax", "amax", "amin"),
)
OVERWRITES = ("copy_", "fill_.Scalar", "fill_.Tensor", "zero_")
IN_PLACE = (
    *OVERWRITES,
    *("masked_fill_.Scalar", "add_.Tensor", "sub_.Tensor", "mul_.Tensor", "index_put_"),
    *("scatter_.src", "scatter_.value", "index_copy_", "index_fill_.int_Scalar"),
)
FILLED = ("arange.start_out",)
SELECTS = ("nonzero",)
KEEP: list[Library] = []
"""What torch only borrows: its library of operators ends with this list."""


class Card:
    """The memory of the virtual cards, byte by byte."""

    def __init__(self, torch: Library) -> None:
        """Find the functions of the stub driver, which is loaded already."""
        self.torch = torch
        driver = ctypes.CDLL(None)
        address, size = ctypes.c_size_t, ctypes.c_size_t
        self._known = driver.vc_known
        self._known.argtypes = (address, ctypes.c_void_p, size)
        self._written = driver.vc_written
        self._written.argtypes = (address, ctypes.c_void_p, size)
        self._unknown = driver.vc_unknown
        self._unknown.argtypes = (address, size)
        self.report = partial(driver.vc_report, b"assumed")
        self._watched: set[int] = set()

    def read(self, tensor: Library) -> Library | None:
        """Return a copy on the host, None where a byte is not known."""
        if tensor.device.type != "cuda":
            return tensor
        size = span(tensor)
        if not 0 < size <= limit(tensor):
            return self.torch.empty(tensor.shape, dtype=tensor.dtype) if size == 0 else None
        buffer = (ctypes.c_char * size)()
        if not self._known(tensor.data_ptr(), buffer, size):
            return None
        flat = self.torch.frombuffer(buffer, dtype=tensor.dtype)
        return flat.as_strided(tensor.shape, tensor.stride())

    def write(self, tensor: Library, values: Library) -> None:
        """Note the values of a tensor, or that they are not known (None)."""
        size = span(tensor)
        if not 0 < size <= LIMIT:
            return
        gaps = size != tensor.numel() * tensor.element_size()
        if gaps and tensor.dim() > 1 and len(tensor) <= MOST_ROWS:
            # what lies between the rows of a view is not its own
            for row, own in zip(tensor, values if values is not None else tensor, strict=True):
                self.write(row, None if values is None else own)
            return
        if values is None or gaps or size > limit(tensor):
            self._unknown(tensor.data_ptr(), size)
            return
        buffer = (ctypes.c_char * size)()
        flat = self.torch.frombuffer(buffer, dtype=tensor.dtype)
        flat.as_strided(tensor.shape, tensor.stride()).copy_(values)
        self._written(tensor.data_ptr(), buffer, size)
        self._watch(tensor.untyped_storage())

    def _watch(self, storage: Library) -> None:
        """Forget a tensor's values when its memory is given back, for others to use."""
        address = storage.data_ptr()
        if address not in self._watched:
            self._watched.add(address)
            watch = weakref.finalize(storage, self._forget, address, storage.nbytes())
            watch.atexit = False

    def _forget(self, address: int, size: int) -> None:
        self._watched.discard(address)
        self._unknown(address, size)


def span(tensor: Library) -> int:
    """Return the bytes from the first to the last element."""
    if not tensor.numel():
        return 0
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return int((last + 1) * tensor.element_size())


def limit(tensor: Library) -> int:
    """Return how many bytes of such a tensor are followed."""
    return FLOAT_LIMIT if tensor.dtype.is_floating_point or tensor.dtype.is_complex else LIMIT


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
        if self.is_activation(arguments[0]):
            return self.kernel.call_boxed(keys, *arguments, **named)
        known = self.values(arguments, named)
        result = self.kernel.call_boxed(keys, *arguments, **named)
        if self.name in SELECTS and known is not None:
            result = result.new_empty(known.shape)
        self.card.write(result, known)
        return result

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
            torch.tensor(one, dtype=None if other is None else torch.result_type(other, one))
            if number
            else one
            for number, one in zip(numbers, arguments, strict=False)
        )

    def values(self, arguments: tuple[Library, ...], named: dict[str, Library]) -> Library | None:
        """Return what the operator gives for known values."""
        torch = self.card.torch
        if not all(self.is_small(one) for one in (*arguments, *named.values())):
            return None
        host = [self.on_host(one) for one in arguments]
        host_named = {key: self.on_host(one) for key, one in named.items() if key != "out"}
        if self.name in FILLED:
            host_named["out"] = torch.empty(named["out"].shape, dtype=named["out"].dtype)
        if self.name in OVERWRITES:
            # what lay there is of no concern
            host[0] = torch.empty(arguments[0].shape, dtype=arguments[0].dtype)
        if any(one is Ellipsis for one in (*host, *host_named.values())):
            if self.name.startswith("all"):
                self.card.report(b"all() of values that nobody knows: true")
                return torch.tensor(True)  # noqa: FBT003 - the value, not a switch
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


def follow_known_values(torch: Library) -> None:
    """Let the operators that small questions go through be followed; torch 2.9 and later."""
    if not hasattr(torch.library, "get_kernel"):
        return
    card = Card(torch)
    library = torch.library.Library("aten", "IMPL")
    KEEP.append(library)
    for name in names():
        follower = Follower(card, name)
        library.impl(name, partial(follower.run), "CUDA", with_keyset=True, allow_override=True)


def names() -> Iterable[str]:
    """Return the operators that are followed."""
    return (*BY_ELEMENT, *OF_MANY, *IN_PLACE, *FILLED, *SELECTS)
