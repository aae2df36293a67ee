"""Blocks of the caching allocator and the shelves on which free ones wait.

A segment is a chain of blocks, linked by `before` and `after` in the order of their addresses. Free
blocks of one pool and stream lie on a shelf in the order of size, then address, so that the first
one that is large enough is the best fit.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, TypeAlias

from oomdoctor.facts.segments import SMALL_REQUEST

if TYPE_CHECKING:
    from collections.abc import Iterator

PoolId: TypeAlias = tuple[int, int]
DEFAULT_POOL: PoolId = (0, 0)
_ADDRESS_BITS = 64


class Range:
    """The address space of an expandable segment: pages of it are mapped and unmapped."""

    __slots__ = ("address", "page", "size")

    def __init__(self, address: int, size: int, page: int) -> None:
        """Reserve `size` bytes of addresses that are mapped in pages of `page` bytes."""
        self.address = address
        self.size = size
        self.page = page


class Block:
    """A piece of a segment: address, size in bytes, and whether somebody has it.

    `requested` are the bytes that were asked for. `uses` are other streams that work with it,
    `events` how many of their events are outstanding. `mapped` is false for the parts of an
    expandable segment without memory, whose `range` is that segment's.
    """

    __slots__ = (
        "address",
        "after",
        "age",
        "allocated",
        "before",
        "events",
        "key",
        "mapped",
        "pool",
        "range",
        "requested",
        "size",
        "stream",
        "uses",
    )

    def __init__(
        self, address: int, size: int, pool: Pool, stream: int, within: Range | None = None
    ) -> None:
        """Make a block that nobody has and that is linked to no other one."""
        self.address = address
        self.size = size
        self.pool = pool
        self.stream = stream
        self.range = within
        self.requested = 0
        self.allocated = False
        self.mapped = True
        self.before: Block | None = None
        self.after: Block | None = None
        self.uses: set[int] | None = None
        self.events = 0
        self.age = 0
        self.key = 0

    def __repr__(self) -> str:
        """Show where it lies and what state it is in."""
        return f"<Block {self.address:#x} {self.size} B {self.state}>"

    @property
    def state(self) -> str:
        """Return the state by the name that snapshots have for it."""
        if self.allocated:
            return "active_allocated"
        if self.events or self.uses:
            return "active_awaiting_free"
        return "inactive" if self.mapped else "unmapped"

    @property
    def active(self) -> bool:
        """Say whether it is allocated, or freed while other streams still use it."""
        return self.allocated or self.events > 0 or bool(self.uses)

    @property
    def whole(self) -> bool:
        """Say whether the block is all of its segment."""
        return self.before is None and self.after is None

    @property
    def growable(self) -> int:
        """Return the size that the block could grow to by mapping what lies behind it."""
        after = self.after
        return self.size + after.size if after is not None and not after.mapped else self.size

    def link(self, before: Block | None, after: Block | None) -> None:
        """Stand between two neighbours."""
        self.before, self.after = before, after
        if before is not None:
            before.after = self
        if after is not None:
            after.before = self


class Shelf:
    """The free blocks of one pool and stream, in the order of size, then address."""

    __slots__ = ("by_key", "keys")

    def __init__(self) -> None:
        """Start empty."""
        self.keys: list[int] = []
        self.by_key: dict[int, Block] = {}

    def index(self, size: int) -> int:
        """Return the place of the first block of at least `size` bytes."""
        return bisect_left(self.keys, size << _ADDRESS_BITS)

    def at(self, index: int) -> Block:
        """Return the block at a place."""
        return self.by_key[self.keys[index]]

    def __len__(self) -> int:
        """Return how many blocks wait."""
        return len(self.keys)

    def blocks(self) -> list[Block]:
        """Return all blocks in order; they may be taken while the list is walked."""
        return [self.by_key[key] for key in self.keys]


class Pool:
    """The free blocks of the small or the large requests, by stream.

    `owner` is the private pool that it is part of. `calls` counts searches, by which the age of a
    free block is told where garbage is collected.
    """

    __slots__ = ("calls", "owner", "shelves", "small", "unmapped")

    def __init__(self, *, small: bool, owner: PrivatePool | None = None) -> None:
        """Start empty."""
        self.small = small
        self.owner = owner
        self.calls = 0
        self.shelves: dict[int, Shelf] = {}
        self.unmapped: dict[int, dict[int, Block]] = {}

    @property
    def id(self) -> PoolId:
        """Return the private pool's name, (0, 0) for what is no private pool."""
        return DEFAULT_POOL if self.owner is None else self.owner.id

    def shelf(self, stream: int) -> Shelf:
        """Return the shelf of a stream."""
        found = self.shelves.get(stream)
        if found is None:
            found = self.shelves[stream] = Shelf()
        return found

    def put(self, block: Block) -> None:
        """Lay a free block on its shelf."""
        block.age = self.calls
        shelf = self.shelves.get(block.stream)
        if shelf is None:
            shelf = self.shelves[block.stream] = Shelf()
        key = block.size << _ADDRESS_BITS | block.address
        block.key = key
        insort(shelf.keys, key)
        shelf.by_key[key] = block

    def take(self, block: Block) -> None:
        """Take a free block from its shelf."""
        shelf = self.shelves[block.stream]
        key = block.key
        del shelf.keys[bisect_left(shelf.keys, key)]
        del shelf.by_key[key]

    def hide(self, block: Block) -> None:
        """Remember a block without memory."""
        self.unmapped.setdefault(block.stream, {})[block.address] = block

    def unhide(self, block: Block, address: int) -> None:
        """Forget the block without memory that began at `address`."""
        del self.unmapped[block.stream][address]

    def unmapped_by_address(self, stream: int) -> list[Block]:
        """Return the blocks without memory of a stream, lowest address first."""
        held = self.unmapped.get(stream, {})
        return [held[address] for address in sorted(held)]

    def free_blocks(self) -> Iterator[Block]:
        """Go through all free blocks: by stream, size and address."""
        for stream in sorted(self.shelves):
            yield from self.shelves[stream].blocks()


class PrivatePool:
    """Memory that a CUDA graph or a `torch.cuda.MemPool` keeps for itself.

    `uses` counts the graphs that share it; at zero its unused segments may be given back.
    `segments` counts the driver's allocations that it still has.
    """

    __slots__ = ("id", "large", "segments", "small", "split", "use_on_oom", "uses")

    def __init__(
        self, pool_id: PoolId, *, use_on_oom: bool = False, no_split: bool = False
    ) -> None:
        """Start empty, with one use."""
        self.id = pool_id
        self.uses = 1
        self.segments = 0
        self.use_on_oom = use_on_oom
        self.split = not no_split
        self.small = Pool(small=True, owner=self)
        self.large = Pool(small=False, owner=self)

    def pool(self, rounded: int) -> Pool:
        """Return the part for requests of this size."""
        return self.small if rounded <= SMALL_REQUEST else self.large
