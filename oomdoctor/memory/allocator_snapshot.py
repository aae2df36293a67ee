"""The state of the allocator model as a memory snapshot of PyTorch 2.13 shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.memory.allocator_settings import INTERVALS, signed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.memory.allocator_block import Block
    from oomdoctor.memory.allocator_state import State


def segments(state: State, *, device: int = 0) -> list[dict[str, Any]]:
    """Return the segments by address, each with its blocks.

    Of an expandable segment every stretch with memory behind it is one.
    """
    heads = [block for block in _blocks(state) if _is_head(block)]
    heads.sort(key=lambda block: block.address)
    return [_segment(head, device) for head in heads]


def snapshot(state: State, *, device: int = 0) -> dict[str, Any]:
    """Return what `torch.cuda.memory._snapshot` would; frames are empty."""
    trace = list(state.trace.entries) if state.trace is not None else []
    return {
        "segments": segments(state, device=device),
        "device_traces": [[] for _ in range(device)] + [trace],
        "allocator_settings": _settings(state),
        "external_annotations": [],
    }


def _blocks(state: State) -> Iterator[Block]:
    for pool in state.pools():
        yield from pool.free_blocks()
    yield from state.live.values()


def _is_head(block: Block) -> bool:
    return block.before is None or not block.before.mapped


def _segment(head: Block, device: int) -> dict[str, Any]:
    blocks, block = [], head
    while True:
        blocks.append(block)
        if block.after is None or not block.after.mapped:
            break
        block = block.after
    return {
        "device": device,
        "address": head.address,
        "total_size": sum(one.size for one in blocks),
        "allocated_size": sum(one.size for one in blocks if one.allocated),
        "active_size": sum(one.size for one in blocks if one.active),
        "requested_size": sum(one.requested for one in blocks if one.active),
        "stream": head.stream,
        "segment_type": "small" if head.pool.small else "large",
        "segment_pool_id": head.pool.id,
        "is_expandable": head.range is not None,
        "frames": [],
        "blocks": [
            {
                "address": one.address,
                "size": one.size,
                "requested_size": one.requested,
                "state": one.state,
                "frames": [],
            }
            for one in blocks
        ],
    }


def _settings(state: State) -> dict[str, Any]:
    settings = state.settings
    divisions = settings.divisions or (0,) * INTERVALS
    return {
        "PYTORCH_CUDA_ALLOC_CONF": settings.text,
        "max_split_size": signed(settings.max_split),
        "garbage_collection_threshold": settings.gc_threshold,
        "expandable_segments": settings.expandable,
        "release_lock_on_cudamalloc": settings.release_lock,
        "graph_capture_record_stream_reuse": settings.reuse_in_capture,
        "roundup_power2_divisions": {str(1 << at): one for at, one in enumerate(divisions)},
    }
