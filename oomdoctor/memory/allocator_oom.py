"""What the allocator model raises when the memory is out, in the words of torch 2.13."""

from __future__ import annotations

from oomdoctor.record import NamedTuple

STEP = 1024
PAGE = "https://docs.pytorch.org/docs/stable/notes/cuda.html"
HINT = (
    "If reserved but unallocated memory is large try setting"
    " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
    f"  See documentation for Memory Management  ({PAGE}"
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)


class Shortage(NamedTuple):
    """The state of the card when a request failed, in bytes; `segment` is what was asked of it."""

    requested: int
    rounded: int
    segment: int
    total: int
    free: int
    allocated: int
    reserved: int
    allowed: int | None = None
    in_private_pools: int = 0


class OutOfMemoryError(Exception):
    """A request that neither the cache nor the card could meet."""

    def __init__(self, shortage: Shortage, *, device: int = 0) -> None:
        """Say what was asked for and what there is."""
        super().__init__(_message(shortage, device))
        self.shortage = shortage


class RejectedError(OutOfMemoryError):
    """A request above the limit, refused before the card was asked (`throw_on_cudamalloc_oom`)."""

    def __init__(self, shortage: Shortage) -> None:
        """Say what was asked for."""
        Exception.__init__(
            self,
            "CUDA out of memory. Allocation was preemptively rejected because it would exceed"
            f" per_process_memory_fraction limit. Requested size: {shown(shortage.segment)}",
        )
        self.shortage = shortage


def shown(size: int) -> str:
    """Print bytes as torch does: `512 bytes`, `20.00 MiB`."""
    if size <= STEP:
        return f"{size} bytes"
    amount, units = size / STEP, ["KiB", "MiB", "GiB"]
    while amount > STEP and len(units) > 1:
        amount /= STEP
        units.pop(0)
    return f"{amount:.2f} {units[0]}"


def _message(shortage: Shortage, device: int) -> str:
    allowed = f"{shown(shortage.allowed)} allowed; " if shortage.allowed is not None else ""
    private = shortage.in_private_pools
    pools = f"with {shown(private)} allocated in private pools (e.g., CUDA Graphs), "
    idle = shortage.reserved - shortage.allocated - private
    return (
        f"CUDA out of memory. Tried to allocate {shown(shortage.segment)}. GPU {device} has a total"
        f" capacity of {shown(shortage.total)} of which {shown(shortage.free)} is free. {allowed}"
        f"Of the allocated memory {shown(shortage.allocated + private)} is allocated by PyTorch,"
        f" {pools if private else ''}and {shown(max(0, idle))} is reserved by PyTorch but"
        f" unallocated. {HINT}"
    )
