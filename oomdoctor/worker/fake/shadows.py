"""The bytes of small tensors of the card whose values are known, within a bound for all together.

A model has thousands of small tensors of known values (masks of every layer, say): a laptop that
traces it must not hold them all.
"""

from __future__ import annotations

import torch

WHOLE_LIMIT = 8 << 20  # bytes of a shadow of integers or truth values
TABLE_LIMIT = 4096  # floats and packed numbers are known for scalars and small tables alone
PACKED = (torch.uint8, torch.int8)  # quantised weights, and states of optimizers with 8 bits
TOGETHER_LIMIT = 64 << 20


class Shadows:
    """Bytes by address; where they are too many, those asked for longest ago are forgotten."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._kept: dict[int, torch.Tensor] = {}
        self._bytes = 0

    def __bool__(self) -> bool:
        """Say whether there is any."""
        return bool(self._kept)

    @property
    def total_bytes(self) -> int:
        """Return how large all are together."""
        return self._bytes

    def get(self, address: int) -> torch.Tensor | None:
        """Return the bytes at an address, if they are known."""
        found = self._kept.pop(address, None)
        if found is not None:
            self._kept[address] = found  # the last of the dictionary is the one asked for last
        return found

    def make(self, address: int, size: int) -> torch.Tensor:
        """Return new bytes for an address."""
        self.forget(address)
        made = torch.empty(size, dtype=torch.uint8, device="cpu")
        self._kept[address] = made
        self._bytes += size
        while self._bytes > TOGETHER_LIMIT:
            self.forget(next(iter(self._kept)))
        return made

    def forget(self, address: int) -> None:
        """Know the bytes at an address no longer."""
        gone = self._kept.pop(address, None)
        if gone is not None:
            self._bytes -= gone.numel()


def most_bytes(tensor: torch.Tensor) -> int:
    """Return how large a tensor's storage may be for its values to be followed."""
    small = tensor.is_floating_point() or tensor.is_complex() or tensor.dtype in PACKED
    return TABLE_LIMIT if small else WHOLE_LIMIT
