"""Causal language models: the next token of every token, with the losses that libraries have."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.twins import chunked, fused
from oomdoctor.worker.twins.adapter import base_of
from oomdoctor.worker.twins.batches import text_config
from oomdoctor.worker.twins.build import empty_model
from oomdoctor.worker.twins.config import config_of, dtype_of
from oomdoctor.worker.twins.log_probs import fuse_head

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from oomdoctor.model.job import Job
    from oomdoctor.worker.observer import Observer
    from oomdoctor.worker.run.bench import Bench

    Batch = dict[str, torch.Tensor]

_LOSSES = ("full-logits", "chunked", "fused")


class CausalRecipe:
    """A model with its own loss on full logits, or one that never holds them all."""

    shifts = True

    def model(self, job: Job, observer: Observer) -> nn.Module:
        """Return the model without storage."""
        if job.loss not in _LOSSES:
            raise UnsupportedError(f"the loss {job.loss!r} is not traced")
        config = config_of(job, observer)
        dtype = dtype_of(job.dtype)
        return empty_model(config, task=job.task, dtype=dtype, observer=observer)

    def ready(self, bench: Bench) -> None:
        """Patch what the loss asks for, and mark where it begins."""
        base = base_of(bench.model)
        if bench.job.loss == "fused" and bench.job.trains:
            fused.fuse_layers(base)
        if _scores(bench):
            fuse_head(base, chunked.SFT, lambda: _begin_loss(bench))
        if bench.job.loss == "full-logits":
            mark_loss(base, bench)

    def batch(self, job: Job, *, rows: int, length: int) -> Batch:
        """Return tokens, a mask and labels as collators make them."""
        vocabulary = int(text_config(job.model.config).get("vocab_size", 1000))
        tokens = torch.arange(rows * length).reshape(rows, length) % max(vocabulary - 1, 1)
        mask = torch.ones(rows, length, dtype=torch.long)
        if job.padded:
            # the first row has full length; the others end earlier
            mask[1:, -max(1, length // 8) :] = 0
            mask[0, -1] = 0 if rows == 1 else 1
        labels = tokens.masked_fill(mask == 0, -100)
        return {"input_ids": tokens, "attention_mask": mask, "labels": labels}

    def loss(
        self, bench: Bench, batch: Batch, items: torch.Tensor | None
    ) -> tuple[torch.Tensor, Any]:
        """Return the loss and the model's outputs."""
        kind = bench.job.loss
        if kind == "full-logits" or not bench.model.training:
            return _own_loss(bench, batch, items)
        if kind == "chunked" and not _scores(bench):
            outputs = bench.model(**_without_labels(batch))
            bench.part("loss")
            loss = chunked.tune_loss(outputs.logits, batch["labels"], bench.job.loss_chunk)
            return loss, outputs
        if kind == "chunked":
            scores = bench.model(**batch, use_cache=False, scores=True)
            return chunked.sft_loss(scores, batch["attention_mask"], items), None
        return _loss_of_hidden(bench, batch, items), None


def _scores(bench: Bench) -> bool:
    """Say whether the output layer returns log-probabilities, as in TRL."""
    return bench.job.loss == "chunked" and bench.job.framework in ("transformers", "trl")


def _begin_loss(bench: Bench) -> None:
    if torch.is_grad_enabled():
        bench.part("loss")


def _without_labels(batch: Batch) -> Batch:
    return {name: value for name, value in batch.items() if name != "labels"}


def _own_loss(bench: Bench, batch: Batch, items: torch.Tensor | None) -> tuple[torch.Tensor, Any]:
    """Return the loss that the model computes itself from all logits."""
    given: dict[str, Any] = dict(batch)
    if items is not None:
        given["num_items_in_batch"] = items
    outputs = bench.model(**given)
    if getattr(outputs, "loss", None) is None:
        raise UnsupportedError(f"{type(base_of(bench.model)).__name__} returns no loss")
    return outputs.loss, outputs


def accepts_items(model: Any) -> bool:
    """Say whether the model takes the number of labels of a whole step (Trainer asks the same)."""
    base = base_of(model)
    if hasattr(base, "accepts_loss_kwargs"):
        return bool(base.accepts_loss_kwargs)
    found = inspect.signature(type(base).forward).parameters.values()
    return any(one.kind is inspect.Parameter.VAR_KEYWORD for one in found)


def mark_loss(base: Any, bench: Bench) -> None:
    """Tell the observer where the model's own loss begins."""
    try:
        plain: Callable[..., torch.Tensor] = base.loss_function
    except AttributeError:
        return

    def marked(*arguments: Any, **named: Any) -> torch.Tensor:
        _begin_loss(bench)
        return plain(*arguments, **named)

    base.loss_function = marked


def _loss_of_hidden(bench: Bench, batch: Batch, items: torch.Tensor | None) -> torch.Tensor:
    """Return a loss that takes hidden states and the weight of the output layer."""
    base = base_of(bench.model)
    head = base.get_output_embeddings()
    with _HiddenAlone(base):
        hidden = bench.model(**_without_labels(batch), use_cache=False).logits
    bench.part("loss")
    labels = torch.nn.functional.pad(batch["labels"], (0, 1), value=-100)[..., 1:].contiguous()
    width = hidden.shape[-1]
    total = fused.FusedLinearLoss.apply(
        hidden.reshape(-1, width), head.weight, labels.reshape(-1).to(hidden.device)
    )
    return total / (labels.numel() if items is None else items)


class _HiddenAlone:
    """Lets a model return its last hidden states in the place of logits."""

    def __init__(self, base: Any) -> None:
        """Take the model that has the output layer."""
        self._head = base.get_output_embeddings()

    def __enter__(self) -> None:
        """Put the identity in the place of the output layer's forward."""
        self._head.forward = lambda hidden: hidden

    def __exit__(self, *_: object) -> None:
        """Restore it."""
        del self._head.forward
