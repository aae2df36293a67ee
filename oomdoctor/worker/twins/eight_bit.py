"""bitsandbytes' optimizers, with pages that need no CUDA.

Paged states are CUDA's managed memory: they are outside PyTorch's allocator and leave the card when
it is full, so that here they are on the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import NoTorchError

if TYPE_CHECKING:
    from torch import nn

_SMALLEST_PAGED = 100_000  # elements; bitsandbytes 0.50, optim/optimizer.py, get_state_buffer


def eight_bit(
    name: str, groups: list[dict[str, Any]], *, rate: float, bits: int, paged: bool
) -> Any:
    """Return an optimizer of bitsandbytes with states of 8 or 32 bits."""
    try:
        import bitsandbytes
    except ImportError as error:
        raise NoTorchError(
            f"bitsandbytes is not there: {error}", hint="pip install bitsandbytes"
        ) from error
    made = type(f"Twin{name}", (_Paged, getattr(bitsandbytes.optim, name)), {})
    optimizer = made(groups, lr=rate, optim_bits=bits, is_paged=paged)
    # the one of the process would remember the modules of every job
    manager: Any = type(optimizer.mng)
    optimizer.mng = manager.__new__(manager)
    optimizer.mng.initialize()
    return optimizer


def spare_embeddings(optimizer: Any, model: nn.Module) -> None:
    """Keep the states of embeddings in 32 bits, as Trainer does (trainer.py, 5.24)."""
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            optimizer.mng.register_module_override(module, "weight", {"optim_bits": 32})


class _Paged:
    """Puts paged states on the host, and calls no library for them."""

    is_paged: bool
    state: Any

    def get_state_buffer(self, p: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return a state of one weight."""
        paged = self.is_paged and p.numel() >= _SMALLEST_PAGED
        if not paged:
            return torch.zeros_like(p, dtype=dtype)
        # nothing reads it, and zeros that were written would be in this host's memory
        state = torch.empty_like(p, dtype=dtype, device="cpu")
        state.is_paged = True
        return state

    def prefetch_state(self, p: torch.Tensor) -> None:
        """Leave pages where they are."""

    def update_step(self, group: Any, p: torch.Tensor, gindex: int, pindex: int) -> None:
        """Update in place; where states are pages, only the gradient is made contiguous."""
        if any(getattr(one, "is_paged", False) for one in self.state[p].values()):
            p.grad = p.grad.contiguous()
            return
        plain: Any = super()
        plain.update_step(group, p, gindex, pindex)
