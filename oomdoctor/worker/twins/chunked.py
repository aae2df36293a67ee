"""Losses that never hold the logits of all tokens: TRL's tiles and torchtune's chunks.

TRL 1.16 projects tiles of 4,096 tokens by 32,768 words into one buffer and keeps sums for each
token; backward computes the tiles again and adds their products in fp32
(kernels/chunked_logprob.py).
torchtune cuts the finished logits into chunks, so that only a chunk is ever in fp32 at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TILE_TOKENS = 4096
_TILE_WORDS = 32768
_TUNE_CHUNKS = 8
OUTPUTS = ("entropy", "mean_logits", "is_top1")
SFT = ("entropy", "is_top1")
_OF_SUMS: dict[str, Callable[[Sequence[torch.Tensor], torch.Tensor], torch.Tensor]] = {
    "entropy": lambda sums, log_total: log_total - sums[2] / sums[1],
    "mean_logits": lambda sums, _: sums[4] / 2,
    "is_top1": lambda sums, _: (sums[6] >= sums[0]) & (sums[6] > sums[5]),
}
"""What each output is of: the largest logit, sums of exponentials, ..., the target's logit."""


class TiledLogProbs(torch.autograd.Function):
    """Log-probability of the target of each token, and what else is wanted of its words.

    `wanted` are names of `OUTPUTS`; what is not stays None.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        targets: torch.Tensor,
        wanted: tuple[str, ...] = SFT,
    ) -> tuple[torch.Tensor | None, ...]:
        """Project tile by tile into one buffer."""
        ctx.set_materialize_grads(False)
        dtype = _compute_dtype(hidden)
        tokens = hidden.shape[0]
        sums = [hidden.new_zeros((tokens,), dtype=torch.float32) for _ in range(7)]
        buffer = _buffer(hidden, dtype)
        for start in range(0, tokens, _TILE_TOKENS):
            rows = hidden[start : start + _TILE_TOKENS].to(dtype)
            for first in range(0, weight.shape[0], _TILE_WORDS):
                words = weight[first : first + _TILE_WORDS].to(dtype)
                tile = buffer[: rows.shape[0], : words.shape[0]]
                torch.mm(rows, words.t(), out=tile)
        log_total = sums[0] + torch.log(sums[1])
        log_probs = sums[6] - log_total
        made = {name: _OF_SUMS[name](sums, log_total) for name in OUTPUTS if name in wanted}
        entropy = made.get("entropy", log_total)
        ctx.save_for_backward(hidden, weight, targets, log_total, entropy)
        ctx.mark_non_differentiable(*(one for name, one in made.items() if name != "entropy"))
        ctx.dtype = dtype
        return log_probs, *(made.get(name) for name in OUTPUTS)

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """Project each tile again and add its products in fp32."""
        hidden, weight, _, _, _ = ctx.saved_tensors
        dtype = ctx.dtype
        for_hidden = _zeros(hidden) if ctx.needs_input_grad[0] else None
        for_weight = _zeros(weight) if ctx.needs_input_grad[1] else None
        buffer = _buffer(hidden, dtype)
        for start in range(0, hidden.shape[0], _TILE_TOKENS):
            rows = hidden[start : start + _TILE_TOKENS].to(dtype)
            for first in range(0, weight.shape[0], _TILE_WORDS):
                words = weight[first : first + _TILE_WORDS].to(dtype)
                tile = buffer[: rows.shape[0], : words.shape[0]]
                torch.mm(rows, words.t(), out=tile)
                if for_hidden is not None:
                    _add_product(for_hidden[start : start + _TILE_TOKENS], tile, words)
                if for_weight is not None:
                    _add_product(for_weight[first : first + _TILE_WORDS], tile.t(), rows)
        return (
            None if for_hidden is None else for_hidden.to(hidden.dtype),
            None if for_weight is None else for_weight.to(weight.dtype),
            None,
            None,
        )


def _compute_dtype(hidden: torch.Tensor) -> torch.dtype:
    kind = hidden.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden.dtype


def _buffer(hidden: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return hidden.new_empty((min(hidden.shape[0], _TILE_TOKENS), _TILE_WORDS), dtype=dtype)


def _zeros(like: torch.Tensor) -> torch.Tensor:
    return torch.zeros(like.shape, dtype=torch.float32, device=like.device)


def _add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    if total.device.type == "cuda" and left.dtype != torch.float32:
        torch.addmm(total, left, right, out_dtype=torch.float32, out=total)
    else:
        total.addmm_(left.float(), right.float())


def _spread(values: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    return values.new_zeros(known.shape).masked_scatter(known, values)


def scored(
    hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor, wanted: tuple[str, ...]
) -> dict[str, torch.Tensor]:
    """Return what TRL's fused output layer returns for each token but the first."""
    hidden, labels = hidden[:, :-1], labels[:, 1:]
    known = labels != -100
    kept = TiledLogProbs.apply(hidden[known], weight, labels[known], wanted)
    names = ("log_probs", *OUTPUTS)
    made = {
        name: _spread(one, known) for name, one in zip(names, kept, strict=True) if one is not None
    }
    made["loss"] = -made["log_probs"].sum() / known.sum().clamp(min=1)
    made["known"] = known
    return made


def sft_loss(
    scores: dict[str, torch.Tensor], mask: torch.Tensor, items: torch.Tensor | None
) -> torch.Tensor:
    """Return the loss of TRL's SFT of what the output layer returned, and measure as it does."""
    per_token = -scores["log_probs"]
    total = scores["known"].sum() if items is None else items
    loss = per_token.sum() / torch.as_tensor(total).clamp(min=1)
    count = scores["known"].sum().sum()
    entropy = scores["entropy"].detach().sum().sum()
    likeliest = scores["is_top1"].sum().sum()
    for metric in (entropy, likeliest):
        if count > 0:
            (metric / count).item()
    mask.sum().sum().item()
    return loss


def tune_loss(logits: torch.Tensor, labels: torch.Tensor, chunks: int | None) -> torch.Tensor:
    """Return torchtune's loss: chunk after chunk of tokens in fp32."""
    number = chunks or _TUNE_CHUNKS
    shifted = torch.nn.functional.pad(labels[..., 1:], (0, 1), value=-100)
    total = logits.new_zeros((), dtype=torch.float32)
    for scores, targets in zip(
        logits.chunk(number, dim=1), shifted.chunk(number, dim=1), strict=True
    ):
        total = total + torch.nn.functional.cross_entropy(
            scores.reshape(-1, scores.shape[-1]).float(),
            targets.reshape(-1),
            ignore_index=-100,
            reduction="sum",
        )
    return total / (shifted != -100).sum()
