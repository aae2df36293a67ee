"""Checkpointing's early end on the fake card.

The second forward of a checkpointed layer ends by an error, raised where its last tensor is saved.
On its way through torch's C++ code, tensors die, and so does the error: what frees their memory
here is Python, which loses an error that is pending. The operator then ends by a SystemError about
it. While the card is there, that is what checkpointing raises and awaits.
"""

from __future__ import annotations

from typing import Any

from torch.utils import checkpoint

_NAME = "_StopRecomputationError"


class EarlyStop:
    """Lets checkpointing take a lost error for its own."""

    def __init__(self) -> None:
        """Change nothing yet."""
        self._plain: Any = None

    def install(self) -> None:
        """Put SystemError in the place of checkpointing's own class, where torch has that."""
        self._plain = getattr(checkpoint, _NAME, None)
        if self._plain is not None:
            setattr(checkpoint, _NAME, SystemError)

    def remove(self) -> None:
        """Restore it."""
        if self._plain is not None:
            setattr(checkpoint, _NAME, self._plain)
