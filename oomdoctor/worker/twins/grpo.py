"""GRPO: answers are generated, scored by policy and reference, and weighed by their advantage.

After TRL 1.16 (`GRPOTrainer._compute_loss`, `_get_per_token_logps_and_entropies`): only the tokens
of answers are projected. Rewards are numbers for each answer and cost nothing here. The policy
before the step is the policy itself, as where each batch of answers is used once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.run.reference import load_reference, reference_of
from oomdoctor.worker.twins import batches
from oomdoctor.worker.twins.adapter import base_of
from oomdoctor.worker.twins.build import empty_model
from oomdoctor.worker.twins.config import config_of, dtype_of
from oomdoctor.worker.twins.log_probs import fuse_head, selected

if TYPE_CHECKING:
    from torch import nn

    from oomdoctor.model.job import Job
    from oomdoctor.worker.observer import Observer
    from oomdoctor.worker.run.bench import Bench

    Batch = dict[str, torch.Tensor]

_LOW, _HIGH = 0.8, 1.2
_BETA = 0.04
_ENTROPY_ROWS = 128


class GrpoRecipe:
    """Groups of answers; `batch` counts answers."""

    shifts = True

    def model(self, job: Job, observer: Observer) -> nn.Module:
        """Return the model without storage."""
        config = config_of(job, observer)
        return empty_model(config, task=job.task, dtype=dtype_of(job.dtype), observer=observer)

    def ready(self, bench: Bench) -> None:
        """Load the reference and give the models their output layer."""
        if bench.job.engine_share:
            bench.observer.assume("answers come from vLLM, whose share of the card stands beside")
        elif bench.job.generation is None:
            bench.observer.assume(
                "answers come from an engine elsewhere: its memory is not counted"
            )
        load_reference(bench)
        if bench.job.loss == "full-logits":
            return
        fuse_head(base_of(bench.model), ("entropy",), lambda: _begin_loss(bench))
        if bench.reference is not None:
            fuse_head(bench.reference, (), lambda: _begin_loss(bench))

    def batch(self, job: Job, *, rows: int, length: int) -> Batch:
        """Return prompts with their answers, as they lie on the card once they were generated."""
        made = batches.text(job, rows, length)
        return {**made, "advantages": torch.ones(rows)}

    def loss(
        self,
        bench: Bench,
        batch: Batch,
        items: torch.Tensor | None,  # noqa: ARG002 - the protocol's
    ) -> tuple[torch.Tensor, Any]:
        """Return the clipped loss, with a divergence where there is a reference."""
        known = None
        if bench.job.reference is not None:
            with reference_of(bench) as reference:
                known, _ = _scored(bench, reference, batch, entropy=False)
        values, entropy = _scored(bench, bench.model, batch, entropy=True)
        mask = batch["attention_mask"][:, -values.size(1) :]
        ratio = torch.exp(values - values.detach())
        weight = batch["advantages"].unsqueeze(1)
        each = -torch.min(ratio * weight, torch.clamp(ratio, _LOW, _HIGH) * weight)
        if known is not None:
            away = known - values
            each = each + _BETA * (torch.exp(away) - away - 1)
        loss = (each * mask).sum() / mask.sum().clamp(min=1.0)
        (entropy * mask).sum()
        return loss, None


def answer_length(job: Job) -> int:
    """Return how many tokens of a row are the answer: those generated, else half of them."""
    new = job.generation.new_tokens if job.generation is not None else job.seq_len // 2
    return max(1, min(new, job.seq_len - 1))


def _scored(
    bench: Bench, model: Any, batch: Batch, *, entropy: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the log-probability of each token of the answers, and how open its choice was."""
    keep = min(answer_length(bench.job), batch["input_ids"].size(1) - 1)
    tokens, mask = batch["input_ids"], batch["attention_mask"]
    inputs = {"input_ids": tokens, "attention_mask": mask}
    if bench.job.loss != "full-logits":
        labels = tokens.masked_fill(mask == 0, batches.IGNORED)
        labels[:, :-keep] = batches.IGNORED
        made = model(**inputs, labels=labels, scores=True)
        values = made["log_probs"][:, -keep:]
        return values, made.get("entropy", values)[:, -keep:]
    logits = model(**inputs, use_cache=False, logits_to_keep=keep + 1).logits
    _begin_loss(bench)
    logits = logits[:, :-1, :][:, -keep:, :] / 1.0  # the temperature: a copy
    values = selected(logits, tokens[:, -keep:], kernel=False)
    return values, _entropy(logits) if entropy else values


def _entropy(logits: torch.Tensor) -> torch.Tensor:
    """Return the entropy of each token, 128 at once (`entropy_from_logits`)."""
    with torch.no_grad():
        found = []
        for rows in logits.reshape(-1, logits.shape[-1]).split(_ENTROPY_ROWS, dim=0):
            logs = torch.nn.functional.log_softmax(rows, dim=-1)
            found.append(-(torch.exp(logs) * logs).sum(-1))
        return torch.cat(found).reshape(logits.shape[:-1])


def _begin_loss(bench: Bench) -> None:
    if torch.is_grad_enabled():
        bench.part("loss")
