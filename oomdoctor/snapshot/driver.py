"""The card of a recorded run: it answers the allocator model as the trace says that it did.

What the model asks for is compared with the next event about segments. A request that comes when
the trace has something else next was a different decision; then it gets made-up addresses.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomdoctor.snapshot.events import Event, PoolId

MADE_UP = 1 << 60
RANGE_BYTES = 1 << 42


class RecordedDriver:
    """Answers from the events that are `coming`; counts in `same` those that the model made too."""

    def __init__(self) -> None:
        """Start with nothing to come."""
        self.total = RANGE_BYTES
        self.coming: deque[Event] = deque()
        self.same = 0
        self.full = False
        self._next = MADE_UP

    @property
    def free(self) -> int:
        """Return nothing: the trace says it only when the memory was out."""
        return 0

    def allocate(self, size: int, stream: int, pool: PoolId) -> int | None:
        """Return the address that the trace has next, None where it has something else first."""
        if self.coming:
            event = self.coming[0]
            if event.action != "segment_alloc":
                return None
            if event.size == size and event.stream == stream:
                self.coming.popleft()
                self.same += 1
                return event.address
        return None if self.full else self._made_up(size)

    def release(self, address: int, size: int, stream: int) -> None:
        """Compare a segment that the model gives back."""
        self._compare("segment_free", address, size, stream)

    def reserve(self, size: int, page: int, stream: int) -> int:
        """Return where the trace maps next."""
        first = next((one.address for one in self.coming if one.action == "segment_map"), None)
        return self._made_up(size) if first is None else first

    def map(self, address: int, size: int, page: int, stream: int) -> bool:
        """Say whether the trace maps these pages next."""
        if self._compare("segment_map", address, size, stream):
            return True
        waits = self.coming and self.coming[0].action != "segment_map"
        return not (self.full or waits or page <= 0)

    def unmap(self, address: int, size: int, stream: int) -> None:
        """Compare pages that the model gives back."""
        self._compare("segment_unmap", address, size, stream)

    def _compare(self, action: str, address: int, size: int, stream: int) -> bool:
        if not self.coming or self.coming[0][:4] != (action, address, size, stream):
            return False
        self.coming.popleft()
        self.same += 1
        return True

    def _made_up(self, size: int) -> int:
        address, self._next = self._next, self._next + size
        return address
