"""What stands for unknown masks with torch before 2.9, where no operator can be followed.

The functions of Python that select rows by a mask are replaced, so that a mask which nobody knows
has all rows and not none. What C++ code or a compiled program selects is not seen.
"""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

from . import unknown_values
from .memory import Card

Library: TypeAlias = Any


def stand_in_for_masks(torch: Library) -> None:
    """Replace `all`, `nonzero` and indexing by a mask."""
    card = Card(torch)
    tensor = torch.Tensor
    rows = functools.partial(_rows, torch, card, tensor.nonzero)
    for owner in (torch, tensor):
        owner.all = _all(card, owner.all)
        owner.nonzero = _nonzero(rows, owner.nonzero)
    original = tensor.__getitem__

    def getitem(self: Library, index: Library) -> Library:
        if _is_mask(torch, index):
            index = rows(index).unbind(1)
        elif isinstance(index, tuple) and any(_is_mask(torch, one) for one in index):
            parts = [rows(one).unbind(1) if _is_mask(torch, one) else (one,) for one in index]
            index = tuple(one for part in parts for one in part)
        return original(self, index)

    tensor.__getitem__ = getitem


def _is_mask(torch: Library, index: Library) -> bool:
    return isinstance(index, torch.Tensor) and index.is_cuda and index.dtype == torch.bool


def _rows(torch: Library, card: Card, nonzero: Library, mask: Library) -> Library:
    """Return the indices of a mask on a card: right where it is known, else all of them."""
    known = card.read(mask)
    if known is not None:
        values = nonzero(known)
        found = torch.empty(values.shape, dtype=torch.long, device=mask.device)
    else:
        parts, said = unknown_values.nonzero(torch, (mask,), None)
        ((shape, values),) = parts
        found = torch.empty(shape, dtype=torch.long, device=mask.device)
        card.report(said)
    card.write(found, values)
    return found


def _nonzero(rows: Library, original: Library) -> Library:
    @functools.wraps(original)
    def nonzero(self: Library, *more: Library, as_tuple: bool = False, **named: Library) -> Library:
        if not self.is_cuda or more or named:
            return original(self, *more, as_tuple=as_tuple, **named)
        found = rows(self)
        return found.unbind(1) if as_tuple else found

    return nonzero


def _all(card: Card, original: Library) -> Library:
    @functools.wraps(original)
    def call(self: Library, *more: Library, **named: Library) -> Library:
        result = original(self, *more, **named)
        if self.is_cuda and card.read(self) is None and result.dtype == card.torch.bool:
            card.fill(result, value=True)
            card.report("all() of values that nobody knows: true")
        return result

    return call
