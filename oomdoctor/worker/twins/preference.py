"""Preference and reward training: the losses of TRL's DPO, KTO, ORPO and reward trainers (1.16).

Chosen and rejected answers are one batch, twice as high as the pairs (`DataCollatorForPreference`);
KTO's rows stand alone, with others of the batch beside them for its estimate of a divergence. What
the trainers measure beside their losses is numbers for each row, and is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.run.reference import load_reference, reference_of
from oomdoctor.worker.twins import batches
from oomdoctor.worker.twins.adapter import base_of
from oomdoctor.worker.twins.build import empty_model
from oomdoctor.worker.twins.config import config_of, dtype_of
from oomdoctor.worker.twins.log_probs import fuse_head, no_dropout, selected

if TYPE_CHECKING:
    from torch import nn

    from oomdoctor.model.job import Job
    from oomdoctor.worker.observer import Observer
    from oomdoctor.worker.run.bench import Bench

    Batch = dict[str, torch.Tensor]
    Scores = dict[str, torch.Tensor]

_BETA = 0.1
_MODEL = ("input_ids", "attention_mask")
_SUMS = ("entropy", "mean_logits", "is_top1")


class PreferenceRecipe:
    """DPO: the answers' log-probabilities against those of a reference, pair by pair."""

    shifts = True

    def model(self, job: Job, observer: Observer) -> nn.Module:
        """Return the model without storage."""
        config = config_of(job, observer)
        return empty_model(config, task=job.task, dtype=dtype_of(job.dtype), observer=observer)

    def ready(self, bench: Bench) -> None:
        """Load the reference, switch dropout off and give the models their output layer."""
        bench.observer.assume("the answer is half of every row")
        no_dropout(bench.model)
        load_reference(bench)
        if bench.job.loss == "full-logits":
            return
        fuse_head(base_of(bench.model), _SUMS, lambda: _begin_loss(bench))
        if bench.reference is not None:
            no_dropout(bench.reference)
            fuse_head(bench.reference, (), lambda: _begin_loss(bench))

    def batch(self, job: Job, *, rows: int, length: int) -> Batch:
        """Return pairs: first all chosen answers, then all rejected ones."""
        return answered(job, 2 * rows, length)

    def loss(
        self,
        bench: Bench,
        batch: Batch,
        items: torch.Tensor | None,  # noqa: ARG002 - the protocol's
    ) -> tuple[torch.Tensor, Any]:
        """Return DPO's loss."""
        scores = score(bench, bench.model, batch)
        chosen, rejected = scores["log_probs"].sum(dim=1).chunk(2, dim=0)
        before = _zeros_like(chosen, rejected)
        if bench.job.reference is not None:
            with reference_of(bench) as reference:
                known = score(bench, reference, batch)["log_probs"]
            before = known.sum(dim=1).chunk(2, dim=0)
        delta = (chosen - before[0]) - (rejected - before[1])
        return -torch.nn.functional.logsigmoid(_BETA * delta).mean(), None


class KtoRecipe(PreferenceRecipe):
    """KTO: single answers, good or bad, and a divergence measured on mismatched ones."""

    def batch(self, job: Job, *, rows: int, length: int) -> Batch:
        """Return answers with their labels, and prompts with answers of others."""
        own = answered(job, rows, length)
        others = {f"KL_{name}": value for name, value in answered(job, rows, length).items()}
        return {**own, **others, "label": torch.arange(rows) % 2 == 0}

    def loss(
        self,
        bench: Bench,
        batch: Batch,
        items: torch.Tensor | None,  # noqa: ARG002 - the protocol's
    ) -> tuple[torch.Tensor, Any]:
        """Return KTO's loss."""
        others = {name.removeprefix("KL_"): batch[name] for name in batch if name.startswith("KL_")}
        with torch.no_grad():
            mismatched = score(bench, bench.model, others)["log_probs"].sum(-1)
        values = score(bench, bench.model, batch)["log_probs"].sum(-1)
        before, before_others = torch.zeros_like(values), torch.zeros_like(mismatched)
        if bench.job.reference is not None:
            with reference_of(bench) as reference:
                before_others = score(bench, reference, others)["log_probs"].sum(-1)
                before = score(bench, reference, batch)["log_probs"].sum(-1)
        divergence = (mismatched - before_others).mean().detach().clamp(min=0)
        sign = torch.where(batch["label"], 1.0, -1.0)
        ratio = values - before
        return (1 - torch.sigmoid(_BETA * sign * (ratio - divergence))).nanmean(), None


class OrpoRecipe(PreferenceRecipe):
    """ORPO and its like: whole logits, the chosen rows' own loss and the odds of both."""

    def ready(self, bench: Bench) -> None:
        """Switch dropout off."""
        bench.observer.assume("the answer is half of every row")
        no_dropout(bench.model)

    def loss(
        self,
        bench: Bench,
        batch: Batch,
        items: torch.Tensor | None,  # noqa: ARG002 - the protocol's
    ) -> tuple[torch.Tensor, Any]:
        """Return ORPO's loss (experimental/orpo, `concatenated_forward`)."""
        outputs = bench.model(**_inputs(batch), use_cache=False)
        logits = outputs.logits
        _begin_loss(bench)
        rows = len(logits) // 2
        labels = torch.where(batch["attention_mask"] == 1, batch["input_ids"], batches.IGNORED)
        flat = logits[:rows, :-1, :].contiguous().view(-1, logits.shape[-1])
        own = torch.nn.functional.cross_entropy(flat, labels[:rows, 1:].contiguous().view(-1))
        del flat
        answers = _labels(batch)[:, 1:].clone()
        known = answers != batches.IGNORED
        targets = torch.where(answers == batches.IGNORED, 0, answers)
        values = selected(logits[:, :-1, :], targets, kernel=_has_kernel(bench))
        mean = (values * known).sum(-1) / known.sum(-1)
        chosen, rejected = mean[:rows].float(), mean[rows:].float()
        odds = (chosen - rejected) - (_log_of_rest(chosen) - _log_of_rest(rejected))
        loss = own - (_BETA * torch.nn.functional.logsigmoid(odds)).mean()
        for half in (logits[:rows, :-1, :], logits[rows:, :-1, :]):
            half.detach().mean()
        return loss, None


class RewardRecipe(PreferenceRecipe):
    """Reward models: one number for each row, the chosen one's to be higher."""

    shifts = False

    def model(self, job: Job, observer: Observer) -> nn.Module:
        """Return the model without storage; it looks for the last token that is no padding."""
        config = config_of(job, observer)
        config.num_labels = 1
        if getattr(config, "pad_token_id", None) is None:
            config.pad_token_id = 0
        return empty_model(config, task=job.task, dtype=dtype_of(job.dtype), observer=observer)

    def ready(self, bench: Bench) -> None:
        """Switch dropout off."""
        no_dropout(bench.model)

    def batch(self, job: Job, *, rows: int, length: int) -> Batch:
        """Return pairs of rows."""
        return batches.text(job, 2 * rows, length)

    def loss(
        self,
        bench: Bench,
        batch: Batch,
        items: torch.Tensor | None,  # noqa: ARG002 - the protocol's
    ) -> tuple[torch.Tensor, Any]:
        """Return the loss of pairs (`RewardTrainer.compute_loss`)."""
        outputs = bench.model(**batch, use_cache=False)
        _begin_loss(bench)
        chosen, rejected = torch.chunk(outputs.logits.squeeze(-1), chunks=2)
        return -torch.nn.functional.logsigmoid(chosen - rejected).mean(), outputs


_RECIPES: dict[str, type[PreferenceRecipe]] = {
    "dpo": PreferenceRecipe,
    "kto": KtoRecipe,
    "orpo": OrpoRecipe,
    "reward": RewardRecipe,
}


def preference_recipe(job: Job) -> PreferenceRecipe:
    """Return the recipe of a task."""
    return _RECIPES[job.task]()


def answered(job: Job, rows: int, length: int) -> Batch:
    """Return rows of which the second half is the answer."""
    made = batches.text(job, rows, length)
    answer = made["attention_mask"].clone()
    answer[:, : length // 2] = 0
    return {**made, "completion_mask": answer}


def score(bench: Bench, model: Any, batch: Batch) -> Scores:
    """Return the log-probability of each token of the answers, zero for others."""
    labels = _labels(batch)
    if bench.job.loss != "full-logits":
        made: Scores = model(**_inputs(batch), labels=labels, scores=True)
        return made
    logits = model(**_inputs(batch), use_cache=False).logits
    _begin_loss(bench)
    targets = torch.roll(batch["input_ids"], shifts=-1, dims=1)
    known = torch.roll(batch["completion_mask"], shifts=-1, dims=1).bool()
    targets[~known] = 0
    values = selected(logits, targets, kernel=False)
    values[~known] = 0
    rows = len(logits) // 2
    for half in (slice(None, rows), slice(rows, None)):
        logits[half][known[half]].mean()  # DPO measures the mean logits of both halves
    return {"log_probs": values}


def _begin_loss(bench: Bench) -> None:
    if torch.is_grad_enabled():
        bench.part("loss")


def _inputs(batch: Batch) -> Batch:
    return {name: batch[name] for name in _MODEL}


def _labels(batch: Batch) -> torch.Tensor:
    return batch["input_ids"].masked_fill(batch["completion_mask"] == 0, batches.IGNORED)


def _zeros_like(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(torch.zeros_like(one) for one in values)


def _has_kernel(bench: Bench) -> bool:
    return bench.device.type == "cuda"


def _log_of_rest(values: torch.Tensor) -> torch.Tensor:
    """Return log(1 - exp(x)), as TRL's `log1mexp`."""
    exact = torch.log1p(-torch.exp(values))
    return torch.where(values > -0.6931472, torch.log(-torch.expm1(values)), exact)
