"""What stands for values that only a card could compute, where a program steers itself by them.

Zeros would leave masks without rows, end a generated text at its first token and send all tokens to
one expert: less memory than the job needs, and nobody would see it. So what is not known is taken
so that memory is as on a card that runs well, or more; each such choice is reported with its line.

| operator | of values that nobody knows |
|---|---|
| `nonzero`, a mask as an index | all rows, or the share that OOMDOCTOR_VIRTUAL_ROWS states |
| `unique`, `repeat_interleave` | all different; each once |
| `argmax`, `multinomial` | the middle of the columns: no special token, so texts get their length |
| `topk` of at most 1,024 columns | each in turn (experts in balance), by OOMDOCTOR_VIRTUAL_SEED |
| `x != x`, `x.abs() == inf` | no; `x == x` yes: nothing is NaN or infinite |
| `all` | true |
"""

from __future__ import annotations

import math
import os
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Library: TypeAlias = Any
Part: TypeAlias = "tuple[tuple[int, ...], Library]"
"""The shape of one result, and its values where they are made up."""
NUMBER_TESTS = ("eq.Tensor", "ne.Tensor", "eq.Scalar", "ne.Scalar")
MOST_COLUMNS = 1024
MOST_CHOICES = 1 << 17


def share_of_rows() -> float:
    """Return which part of a mask that nobody knows is taken for true."""
    try:
        return min(1.0, max(0.0, float(os.environ.get("OOMDOCTOR_VIRTUAL_ROWS", "1"))))
    except ValueError:
        return 1.0


def nonzero(
    torch: Library, arguments: tuple[Library, ...], constant: bool | None
) -> tuple[list[Part], str]:
    """Take rows in even steps, as many as the share says; none or all of a constant."""
    shape, count = arguments[0].shape, arguments[0].numel()
    share = share_of_rows() if constant is None else float(constant)
    rows = math.ceil(count * share)
    part = "all rows" if rows == count else f"{share:.0%} of the rows"
    said = f"{part} of a mask that nobody knows"
    size = (rows, len(shape))
    if not shape or not rows or rows * len(shape) > MOST_CHOICES:
        return [(size, None)], said
    flat = torch.arange(rows, device="cpu")
    flat = flat if rows == count else (flat / share).long()
    return [(size, torch.stack(torch.unravel_index(flat, shape), dim=1))], said


def unique(
    torch: Library, arguments: tuple[Library, ...], constant: bool | None
) -> tuple[list[Part], str]:
    """Take every element for different from the others."""
    del torch, constant
    count = arguments[0].numel()
    parts: list[Part] = [((count,), None), (tuple(arguments[0].shape), None), ((count,), None)]
    return parts, "unique: all are different"


def repeat_interleave(
    torch: Library, arguments: tuple[Library, ...], constant: bool | None
) -> tuple[list[Part], str]:
    """Take each element once, or as often as the output's size says."""
    del torch, constant
    size = arguments[0].numel()
    if len(arguments) > 1 and arguments[1] is not None:
        size = int(arguments[1])
    return [((size,), None)], "repeat_interleave: each once"


def argmax(
    torch: Library, arguments: tuple[Library, ...], result: Library
) -> tuple[Library, str] | None:
    """Take the middle column."""
    dim = arguments[1] if len(arguments) > 1 else None
    columns = arguments[0].numel() if dim is None else arguments[0].shape[dim]
    chosen = torch.full(result.shape, columns // 2, dtype=result.dtype, device="cpu")
    return chosen, "argmax of values that nobody knows: the middle column"


def multinomial(
    torch: Library, arguments: tuple[Library, ...], result: Library
) -> tuple[Library, str] | None:
    """Take the middle columns, as many as are wanted."""
    columns, wanted = arguments[0].shape[-1], result.shape[-1]
    row = (torch.arange(wanted, device="cpu") + columns // 2) % columns
    return row.expand(result.shape), "samples of a distribution that nobody knows: the middle"


def topk(
    torch: Library, arguments: tuple[Library, ...], result: Library
) -> tuple[Library, str] | None:
    """Take the columns in turn, so that each is taken as often as the others."""
    scores, indices = arguments[0], result[1]
    dim = arguments[2] if len(arguments) > 2 else -1
    last = dim in (-1, scores.dim() - 1)
    columns = scores.shape[-1] if scores.dim() else 0
    if not last or not 1 < columns <= MOST_COLUMNS or not 0 < indices.numel() <= MOST_CHOICES:
        return None
    order = list(range(columns))
    Random(os.environ.get("OOMDOCTOR_VIRTUAL_SEED", "0")).shuffle(order)  # noqa: S311 - no secret
    turn = torch.arange(indices.numel(), device="cpu").remainder(columns)
    chosen = torch.tensor(order, device="cpu")[turn].reshape(indices.shape)
    return (None, chosen), "topk of scores that nobody knows: all columns in turn"


def is_number_test(name: str, arguments: tuple[Library, ...]) -> bool | None:
    """Say what a test for NaN or infinity gives, None for any other comparison."""
    if name not in NUMBER_TESTS:
        return None
    one, other = arguments[0], arguments[1]
    if name.endswith("Scalar"):
        infinite = isinstance(other, float) and math.isinf(other)
        return name.startswith("ne") if infinite else None
    same = hasattr(other, "data_ptr") and one is not None and _is_same(one, other)
    return name.startswith("eq") if same and one.is_floating_point() else None


def _is_same(one: Library, other: Library) -> bool:
    return bool(
        one.data_ptr() == other.data_ptr()
        and one.shape == other.shape
        and one.stride() == other.stride()
    )


SIZES: dict[
    str,
    Callable[[Library, tuple[Library, ...], bool | None], tuple[list[Part], str]],
] = {
    "nonzero": nonzero,
    "_unique2": unique,
    "repeat_interleave.Tensor": repeat_interleave,
}
"""Operators whose results have as many rows as the values say."""
CHOICES: dict[
    str, Callable[[Library, tuple[Library, ...], Library], tuple[Library, str] | None]
] = {
    "argmax": argmax,
    "argmin": argmax,
    "multinomial": multinomial,
    "topk": topk,
}
"""Operators that choose among columns."""
