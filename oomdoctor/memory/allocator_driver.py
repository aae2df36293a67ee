"""The card under the allocator model: how much memory there is, and at which addresses.

The allocator asks a driver for segments and pages as PyTorch asks CUDA. `Card` answers by its
capacity; whoever replays a recorded run answers what was recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from oomdoctor.memory.allocator_block import PoolId

FIRST_ADDRESS = 0x7F0000000000
GRANULE = 2 << 20


class Driver(Protocol):
    """What the allocator asks of a card. A stream is named by its number."""

    total: int
    """Bytes of the card, of which a fraction is allowed."""

    @property
    def free(self) -> int:
        """Return the bytes that nobody has."""
        ...

    def allocate(self, size: int, stream: int, pool: PoolId) -> int | None:
        """Return the address of a new segment, None where the memory is out."""
        ...

    def release(self, address: int, size: int, stream: int) -> None:
        """Take a segment back."""
        ...

    def reserve(self, size: int, page: int, stream: int) -> int:
        """Return the first of `size` bytes of addresses without memory."""
        ...

    def map(self, address: int, size: int, page: int, stream: int) -> bool:
        """Put memory behind addresses, all or nothing."""
        ...

    def unmap(self, address: int, size: int, stream: int) -> None:
        """Take the memory behind addresses back."""
        ...


class Card:
    """A card of some capacity that hands out ever higher addresses, in steps of 2 MiB.

    `used` is what others and the CUDA context hold; it may be changed at any time.
    """

    def __init__(
        self,
        capacity: int = 1 << 50,
        *,
        total: int | None = None,
        used: int = 0,
        first_address: int = FIRST_ADDRESS,
    ) -> None:
        """Start with `capacity` bytes; `total` is what fractions are taken of."""
        self.capacity = capacity
        self.total = capacity if total is None else total
        self.used = used
        self._next = first_address

    @property
    def free(self) -> int:
        """Return the bytes that nobody has."""
        return max(0, self.capacity - self.used)

    def allocate(self, size: int, stream: int, pool: PoolId) -> int | None:
        """Return the address of a new segment, None where the memory is out."""
        taken = -(-size // GRANULE) * GRANULE
        if self.used + taken > self.capacity:
            return None
        self.used += taken
        address = self._next
        self._next += taken
        return address

    def release(self, address: int, size: int, stream: int) -> None:
        """Take a segment back."""
        self.used -= -(-size // GRANULE) * GRANULE

    def reserve(self, size: int, page: int, stream: int) -> int:
        """Return the first of `size` bytes of addresses without memory."""
        address = self._next
        self._next += -(-size // GRANULE) * GRANULE
        return address

    def map(self, address: int, size: int, page: int, stream: int) -> bool:
        """Put memory behind addresses, all or nothing."""
        if self.used + size > self.capacity:
            return False
        self.used += size
        return True

    def unmap(self, address: int, size: int, stream: int) -> None:
        """Take the memory behind addresses back."""
        self.used -= size
