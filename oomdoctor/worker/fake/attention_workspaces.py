"""What attention kernels take besides their results: forward partial results, backward sums.

The formulas are those of the host code in torch 2.13: flash attention 2 (`flash_api.cpp`), the
CUTLASS kernels behind "efficient" attention (`kernel_backward.h`), and cuDNN 9's own answers for
its attention engines. They were compared with that code for 344 calls on sm80 and sm90.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import torch

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.worker.fake.workspaces import Call, Scratch

FLASH_ROWS = 128  # lengths are rounded up to it in flash attention's backward
SPLIT_WORTH = 0.85  # splits are as many as come this near to the best use of the card
MAX_SPLITS = 128
TAIL = 16  # bytes of locks after each tile of a query's gradient
CUDNN_BYTES = 256


class Tile(NamedTuple):
    """How the backward kernel of efficient attention cuts a query's gradient."""

    rows: int
    columns: int


def rounded(number: int, multiple: int) -> int:
    """Return the number rounded up to a multiple."""
    return -(-number // multiple) * multiple


def flash_width(width: int) -> int:
    """Return the head dimension that flash attention computes with."""
    return rounded(width, 32 if width <= 128 else 64)


def flash_splits(
    query: tuple[int, int, int, int], key: tuple[int, int, int, int], processors: int
) -> int:
    """Return into how many parts flash attention splits the keys, to use the whole card."""
    batch, heads, length, width = query
    key_heads, keys = key[1], key[2]
    if length == 1 and heads > key_heads and width % 8 == 0:
        length, heads = heads // key_heads, key_heads  # a group's heads become rows
    block = 256 if width <= 64 else 128 if width <= 128 else 64
    blocks = -(-keys // block)
    tasks = batch * heads * -(-length // 64)
    available = processors * 2
    if tasks >= 0.8 * available:
        return 1
    most = min(MAX_SPLITS, available, blocks)
    uses = []
    for splits in range(1, most + 1):
        if splits > 1 and -(-blocks // splits) == -(-blocks // (splits - 1)):
            uses.append(0.0)
            continue
        waves = tasks * splits / available
        uses.append(waves / ceil(waves))
    best = max(uses)
    return next(n for n, use in enumerate(uses, 1) if use and use >= SPLIT_WORTH * best)


def _flash_backward(call: Call, scratch: Scratch) -> None:
    """Take the sums of rows, the query's gradient in fp32, and key gradients of all heads."""
    query, key = call.arguments[1], call.arguments[2]
    batch, heads, length, width = query.shape
    rows = rounded(length, FLASH_ROWS)
    scratch.take(batch * heads * rows * 4)
    scratch.take(batch * rows * heads * flash_width(width) * 4)
    if key.size(1) != heads:
        expanded = batch * key.size(2) * heads * width * query.itemsize
        scratch.take(expanded)
        scratch.take(expanded)


def _efficient_backward(call: Call, scratch: Scratch) -> None:
    """Take the sums of rows, and the gradients that several blocks add to."""
    gradient, query, key, value = call.arguments[:4]
    batch, heads, length, width = query.shape
    sums = batch * heads * length * 4
    if query.dtype == torch.float32:
        product = scratch.take(gradient.numel() * 4)
        delta = scratch.take(sums)
        if length > 1 and heads > 1:
            loose, delta = delta, scratch.take(sums)
            scratch.give(loose)
        scratch.give(product)
    else:
        delta = scratch.take(sums)
    tile = efficient_tile(width, query.dtype)
    tiles = -(-length // tile.rows) * -(-width // tile.columns)
    each = tiles * (tile.rows * tile.columns * 4 + TAIL)
    if query.dtype != torch.float32 and width > 128:
        keys = rounded(key.size(2), tile.columns)
        each += keys * (rounded(width, tile.rows) + rounded(value.size(3), tile.rows)) * 4
    workspace = scratch.take(batch * heads * each)
    scratch.give(delta, workspace)


def efficient_tile(width: int, dtype: torch.dtype) -> Tile:
    """Return the tile of the kernel that is taken for a head dimension."""
    if width <= 64:
        return Tile(64, 64)
    if dtype == torch.float32 or width > 128:
        return Tile(128, 64)
    return Tile(128, 128)


def _cudnn_backward(call: Call, scratch: Scratch) -> None:
    """Take the query's gradient in fp32, the sums of rows, and key gradients of all heads."""
    query, key, value = call.arguments[1:4]
    batch, heads, length, width = query.shape
    size = query.numel() * 4 + batch * heads * length * 4 + CUDNN_BYTES
    if key.size(1) != heads:
        size += batch * heads * key.size(2) * (width + value.size(3)) * query.itemsize
    scratch.take(size)


KERNELS: dict[str, Callable[[Call, Scratch], None]] = {
    "_scaled_dot_product_flash_attention_backward": _flash_backward,
    "_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "_scaled_dot_product_cudnn_attention_backward": _cudnn_backward,
}
"""What the backward kernels take, by their names in torch's list of functions."""
