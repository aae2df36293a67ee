"""What no allocator counts, on a virtual card: a figure, since a run needs one, and its band.

The context of a real process takes 0.30 to 0.86 GiB (memory/outside.py); 0.45 GiB lies where most
were seen. NCCL's buffers: 544 MiB for a communicator of two ranks and 688 MiB for one of more, on
four A100 with NVLink in 2023 (NVIDIA/nccl issue 964); an all-to-all on eight H100 took 3.3 GiB more
(issue 1685). Without NVLink there are fewer channels; nobody measured that here, so it is the lower
end of the band that an estimate has.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.memory.outside import COMMUNICATION, CONTEXT
from oomdoctor.record import replace
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from oomdoctor.virtual.card import VirtualCard

CONTEXT_BYTES = int(0.45 * (1 << 30))
PAIR_BYTES, MORE_BYTES = 544 << 20, 688 << 20
_NVLINK = re.compile(r"SXM|HBM3|NVL|H200|B200|GB200|B300|GB300|V100-SXM|A800-SXM")


def with_outside(card: VirtualCard, *, context_bytes: int | None = None) -> VirtualCard:
    """Return a card whose processes have a context, and whose communicators have buffers."""
    linked = _NVLINK.search(card.name) is not None and "MIG" not in card.name
    return replace(
        card,
        context_bytes=CONTEXT_BYTES if context_bytes is None else context_bytes,
        pair_bytes=PAIR_BYTES if linked else COMMUNICATION[0],
        communicator_bytes=MORE_BYTES if linked else COMMUNICATION[0],
    )


def context_words(context_bytes: int) -> str:
    """Return what is said of the context, with the band that it lies in."""
    low, high = map(format_size, CONTEXT)
    return (
        f"{format_size(context_bytes)} of CUDA context for each process is assumed; on real cards "
        f"it was {low} to {high}"
    )


def communicator_words(card: VirtualCard) -> str:
    """Return what is said of NCCL's buffers."""
    low, high = map(format_size, COMMUNICATION)
    return (
        f"NCCL's buffers are assumed: {format_size(card.communicator_bytes)} for each communicator "
        f"({format_size(card.pair_bytes)} of two ranks); on real cards {low} to {high}"
    )
