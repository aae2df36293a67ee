"""Log-probabilities of answers, as TRL computes them.

TRL 1.16 gives a model an output layer that returns them in the place of logits, tile by tile and
inside the model's forward (`add_fused_lm_head`); earlier ones, and its trainers for ORPO and CPO,
take whole logits (`selective_log_softmax`): 1.16 by a kernel that keeps them once, earlier ones by
a logarithm for each row.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.twins.chunked import scored

if TYPE_CHECKING:
    from collections.abc import Callable


def fuse_head(base: Any, wanted: tuple[str, ...], begins: Callable[[], None]) -> None:
    """Let a model score labels where it is called with `scores`; `begins` hears of the loss."""
    plain = base.forward

    @wraps(plain)  # `generate` looks at the signature
    def forward(*arguments: Any, scores: bool = False, labels: Any = None, **named: Any) -> Any:
        if not scores:
            return plain(*arguments, **named, **({} if labels is None else {"labels": labels}))
        named["use_cache"] = False
        hidden = base.base_model(*arguments, **named).last_hidden_state
        begins()
        return scored(hidden, base.get_output_embeddings().weight, labels, wanted)

    base.forward = forward


def no_dropout(model: torch.nn.Module) -> None:
    """Switch dropout off, as `disable_dropout` does."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0


class SelectedLogProbs(torch.autograd.Function):
    """TRL's kernel over finished logits: it keeps them, and their gradient is as large."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the log-probability of each target."""
        log_probs, entropy, total, expected = (
            torch.zeros(logits.shape[:-1], dtype=torch.float32, device=logits.device)
            for _ in range(4)
        )
        ctx.save_for_backward(logits, targets, total, expected)
        del entropy
        return log_probs

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return a gradient of the logits' size and dtype."""
        logits = ctx.saved_tensors[0]
        return torch.zeros_like(logits, memory_format=torch.contiguous_format), None


def selected(logits: torch.Tensor, targets: torch.Tensor, *, kernel: bool) -> torch.Tensor:
    """Return the log-probability of each target, by the kernel or row by row."""
    if kernel:
        values: torch.Tensor = SelectedLogProbs.apply(logits, targets)
        return values
    index = targets.unsqueeze(-1)
    if logits.dtype == torch.float32:
        chosen = torch.gather(logits, dim=-1, index=index).squeeze(-1)
        return chosen - torch.stack([torch.logsumexp(row, dim=-1) for row in logits])
    rows = [
        torch.nn.functional.log_softmax(row, dim=-1).gather(dim=-1, index=one)
        for row, one in zip(logits, index, strict=True)
    ]
    return torch.stack(rows).squeeze(-1)
