"""What kernels take that sort, scan or gather by index: most of them are CUB's.

`TILES` has the number of elements that one block takes, by compute capability; CUB keeps a word
or a table for each block (`DeviceScan`, `DeviceRadixSort` with onesweep).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple
from oomdoctor.worker.fake.reductions import Reduction, buffers

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from oomdoctor.worker.fake.workspaces import Call, Scratch

ALIGNMENT = 256  # of each part of a CUB workspace; up to 255 bytes more align its beginning
PADDING = 32  # words before those of the first block of a scan
BINS = 256
BITONIC = 4096  # rows up to this length are sorted within a block
SORTED_FROM = 3072  # indices from which an embedding's gradient is sorted by index
BLOCKS_EACH, LONG_RUN = 4, 30  # blocks of a processor, and gradients of one index on average
PARTIAL_ROWS = 10  # gradients of one index that one thread of an embedding adds up


class Tiles(NamedTuple):
    """Elements per block: radix sort by keys of 4 and of 8 bytes, runs of keys, selection.

    `counting` is the workspace of counting many elements, in bytes.
    """

    radix4: int
    radix8: int
    unique: int
    select: int
    counting: int
    scan8: int = 896
    scan4: int = 1920


TILES: dict[tuple[int, int], Tiles] = {
    (7, 5): Tiles(2816, 2816, 320, 640, 4607),
    (8, 0): Tiles(3072, 3840, 1344, 2304, 4607),
    (8, 6): Tiles(3072, 3840, 320, 640, 4607),
    (9, 0): Tiles(5376, 4608, 4992, 4096, 5631),
    (10, 0): Tiles(5376, 4608, 4992, 3584, 6399),
    (12, 0): Tiles(5376, 4608, 4992, 3584, 7167),
}


def tiles_of(capability: tuple[int, int]) -> Tiles:
    """Return the row of the newest architecture that is not newer."""
    older = [one for one in TILES if one <= capability]
    return TILES[max(older)] if older else TILES[min(TILES)]


def _parts(*sizes: int) -> int:
    """Return the bytes of a CUB workspace of these parts."""
    return sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes) + ALIGNMENT - 1


def scan_bytes(count: int, width: int, tiles: Tiles) -> int:
    """Return the workspace of a scan over so many elements.

    >>> scan_bytes(20000, 8, TILES[8, 0])
    1535
    """
    tile, word = (tiles.scan8, 16) if width == 8 else (tiles.scan4, 8)
    return _parts((-(-count // tile) + PADDING) * word, 1)


def radix_bytes(count: int, *, key: int, value: int, bits: int, tiles: Tiles) -> int:
    """Return the workspace of sorting pairs by radix; nothing where one block can.

    >>> radix_bytes(20000, key=4, value=8, bits=32, tiles=TILES[8, 0])
    255999
    """
    passes = -(-bits // 8)
    blocks = -(-count // (tiles.radix8 if key == 8 else tiles.radix4))
    if blocks <= 1:
        return 1
    tables = blocks * BINS * 4 + passes * BINS * 8
    if passes == 1:  # straight into the output
        return _parts(tables, ALIGNMENT)
    return _parts(count * key, count * value, tables, ALIGNMENT)


def _cumsum(call: Call, scratch: Scratch) -> None:
    source, output = call.arguments[0], call.result
    if source.dtype != output.dtype:
        scratch.take(source.numel() * output.itemsize)
    dimension = call.argument(1, "dim")
    if source.dim() and source.numel() == source.shape[dimension]:
        tiles = tiles_of(call.card.capability)
        scratch.take(scan_bytes(source.numel(), output.itemsize, tiles))


def _sort(call: Call, scratch: Scratch) -> None:
    """Take the indices, and where a row is too long for a block, the workspace of CUB."""
    source = call.arguments[0]
    count = source.numel()
    placed = [one for one in call.arguments[1:] if type(one) is int]
    dimension = placed[0] if placed else call.named.get("dim", -1)
    length = source.shape[dimension] if source.dim() else 1
    rows = count // max(1, length)
    if length <= BITONIC:
        scratch.take(length * 8)
        return
    tiles = tiles_of(call.card.capability)
    width = source.itemsize
    if rows == 1 or length >= 1_000_000:
        scratch.take(length * 8)
        for _ in range(rows):
            scratch.use(_pairs(length, width, tiles))
        return
    for size in (count * 8, count * width):
        scratch.take(size)
    scratch.use(radix_bytes(count, key=8, value=8, bits=64, tiles=tiles))


def _pairs(length: int, width: int, tiles: Tiles) -> int:
    return radix_bytes(length, key=width, value=8, bits=width * 8, tiles=tiles)


def by_index(scratch: Scratch, count: int, rows: int, tiles: Tiles) -> list[int]:
    """Sort indices into `rows` rows beside their places; return what is still taken."""
    bits = max(1, (rows - 1).bit_length())
    taken = [scratch.take(count * 8) for _ in range(3)]
    scratch.use(radix_bytes(count, key=8, value=8, bits=bits, tiles=tiles))
    return taken


def embedding_backward(
    call: Call, scratch: Scratch, make: Callable[[], torch.Tensor]
) -> torch.Tensor:
    """Make an embedding's gradient as the CUDA kernel does: from many indices on by sorting."""
    gradient, indices, rows = call.arguments[:3]
    count = indices.numel()
    if count <= SORTED_FROM and not call.arguments[4]:
        return make()
    tiles = tiles_of(call.card.capability)
    scratch.give(by_index(scratch, count, rows, tiles)[2])
    result = make()
    width = gradient.shape[-1]
    scratch.take(count * 8)
    scratch.take(8)
    keys = scratch.take(count * 8)
    scratch.use(_parts((-(-count // tiles.unique) + PADDING) * 16, 1))
    scratch.give(keys)
    segments = min(count, rows)
    scratch.take(segments * 8)
    scratch.take(segments * 8)
    scratch.use(scan_bytes(segments, 8, tiles))
    scratch.take(8)
    partial = count // PARTIAL_ROWS + segments
    scratch.take(partial * 8)
    if segments < BLOCKS_EACH * call.card.processors and count >= LONG_RUN * segments:
        scratch.take(partial * 8)  # few indices, each very often: sums go straight to their rows
        if gradient.itemsize < 4:
            scratch.take(segments * width * 4)
    else:
        scratch.take(partial * width * 4)
    return result


def _index_put(call: Call, scratch: Scratch) -> None:
    """Take what adding by index needs: the indices are put in order first."""
    target, indices = call.arguments[0], call.arguments[1]
    if not call.argument(3, "accumulate", default=False):
        return
    known = [one for one in indices if one is not None]
    count = max((one.numel() for one in known), default=0)
    rows = 1
    for place, one in enumerate(indices):
        if one is not None:
            rows *= target.shape[place]
    if not call.argument(4, "unsafe", default=False):
        _check_range(scratch, [one.numel() for one in known], call.card.processors)
    linear = scratch.take(count * 8)
    scratch.take(count * 8)
    scratch.give(linear)
    by_index(scratch, count, rows, tiles_of(call.card.capability))


def _check_range(scratch: Scratch, counts: list[int], processors: int) -> None:
    """Take what finding the least and the greatest index needs."""
    for count in counts:
        least, most = scratch.take(8), scratch.take(8)
        shared = Reduction((count,), (1,), (True,), 8, 16)
        scratch.give(*reversed([scratch.take(size) for size in buffers(shared, processors)]))
        scratch.use(1)
        scratch.use(1)
        scratch.give(least, most)


def _masked_scatter(call: Call, scratch: Scratch) -> None:
    """Take the place in the source of each element, counted over the mask."""
    count = call.arguments[1].numel()
    scratch.take(count * 8)
    scratch.take(scan_bytes(count, 8, tiles_of(call.card.capability)))


def nonzero(scratch: Scratch, count: int, capability: tuple[int, int]) -> None:
    """Take what counting the elements that are not zero needs."""
    scratch.take(4)
    scratch.use(1 if count <= BITONIC else tiles_of(capability).counting)


def select_bytes(count: int, capability: tuple[int, int]) -> int:
    """Return the workspace of selecting among so many elements."""
    blocks = -(-count // tiles_of(capability).select)
    return _parts((blocks + PADDING) * 8, 1)


KERNELS: dict[str, Callable[[Call, Scratch], None]] = {
    **dict.fromkeys(("cumsum.out", "cumprod.out"), _cumsum),
    **dict.fromkeys(("sort.values_stable", "sort.stable", "sort.values"), _sort),
    **dict.fromkeys(("_index_put_impl_", "index_put_"), _index_put),
    "masked_scatter_": _masked_scatter,
}
