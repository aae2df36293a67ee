"""Batches of tasks that the worker has no recipe of its own for; their models have a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.run import job as running
from oomdoctor.worker.run.recipe import recipe_of
from oomdoctor.worker.twins.build import empty_model
from oomdoctor.worker.twins.config import config_of, dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.model.job import Job
    from oomdoctor.worker.observer import Observer
    from oomdoctor.worker.run.bench import Bench
    from oomdoctor.worker.run.recipe import Recipe

    Batch = dict[str, torch.Tensor]

CLASSES = 1000


class OwnLoss:
    """A model that takes labels and returns its loss."""

    shifts = False

    def __init__(self, batch: Callable[[Job, int, int], Batch]) -> None:
        """Take what makes a batch."""
        self._batch = batch

    def model(self, job: Job, observer: Observer) -> torch.nn.Module:
        """Return the model without storage."""
        config = config_of(job, observer)
        return empty_model(config, task=job.task, dtype=dtype_of(job.dtype))

    def ready(self, bench: Bench) -> None:
        """Change nothing."""

    def batch(self, job: Job, *, rows: int, length: int) -> Batch:
        """Return a batch on the host."""
        return self._batch(job, rows, length)

    def loss(
        self, bench: Bench, batch: Batch, items: torch.Tensor | None
    ) -> tuple[torch.Tensor, Any]:
        """Return the model's own loss and outputs."""
        named: dict[str, Any] = dict(batch)
        if items is not None:
            named["num_items_in_batch"] = items
        outputs = bench.model(**named)
        return outputs.loss, outputs


def tokens(rows: int, length: int) -> torch.Tensor:
    """Return ids of tokens, none of them padding."""
    return torch.arange(rows * length).reshape(rows, length) % 900 + 5


def masked(job: Job, rows: int, length: int) -> Batch:
    """Return rows of which every seventh token is to be guessed."""
    ids = tokens(rows, length)
    mask = torch.ones_like(ids)
    if job.padded:
        mask[1:, -max(1, length // 8) :] = 0
    guessed = torch.arange(length) % 7 == 0
    labels = ids.masked_fill(~guessed.expand(rows, -1), -100)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def translated(job: Job, rows: int, length: int) -> Batch:
    """Return rows and what they become."""
    ids = tokens(rows, length)
    labels = tokens(rows, job.target_len or length)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def pictures(job: Job, rows: int, length: int) -> Batch:
    """Return pictures and their classes."""
    del length
    side = job.image_size or 224
    return {
        "pixel_values": torch.zeros(rows, 3, side, side),
        "labels": torch.arange(rows) % (job.labels or CLASSES),
    }


MORE = {"masked-lm": masked, "seq2seq": translated, "image-classification": pictures}


def install() -> None:
    """Let the worker take these where it has none."""

    def with_more(job: Job) -> Recipe:
        return OwnLoss(MORE[job.task]) if job.task in MORE else recipe_of(job)

    running.recipe_of = with_more
