"""The six parts of a peak that people know, out of the categories of its allocations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.estimate import PartBytes

if TYPE_CHECKING:
    from collections.abc import Mapping

SIX: Mapping[str, tuple[str, ...]] = {
    "weights": ("weights",),
    "adapters": ("adapter",),
    "gradients": ("gradient",),
    "optimizer states": ("optimizer",),
    "activations and logits": ("activation", "logits and loss", "kv cache", "input"),
    "workspaces and temporaries": ("workspace", "communication", "temporary"),
}
"""Each part with the categories that it is made of."""


def six_parts(by_kind: Mapping[str, int]) -> tuple[PartBytes, ...]:
    """Return the bytes of the six parts; they add up to all categories."""
    return tuple(
        PartBytes(name=name, bytes=sum(by_kind.get(kind, 0) for kind in kinds))
        for name, kinds in SIX.items()
    )
