"""Models that take labels and return their loss: encoders, classifiers, encoder-decoders, pictures.

What they allocate for it is their own code's doing; here are only their batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.twins import batches, vision
from oomdoctor.worker.twins.adapter import base_of
from oomdoctor.worker.twins.build import empty_model, task_of
from oomdoctor.worker.twins.causal import mark_loss
from oomdoctor.worker.twins.config import config_of, dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from torch import nn

    from oomdoctor.model.job import Job
    from oomdoctor.worker.observer import Observer
    from oomdoctor.worker.run.bench import Bench

    Batch = dict[str, torch.Tensor]

_BATCHES: dict[str, Callable[[Job, int, int], Batch]] = {
    "classification": batches.classified,
    "token-classification": batches.classified_tokens,
    "masked-lm": batches.masked,
    "seq2seq": batches.translated,
    "image-classification": batches.pictures,
}


class LabelledRecipe:
    """A model with its own loss."""

    shifts = False

    def model(self, job: Job, observer: Observer) -> nn.Module:
        """Return the model without storage."""
        if vision.is_torchvision(job):
            return vision.torchvision_model(job)
        config = config_of(job, observer)
        for name in ("pad_token_id", "decoder_start_token_id"):
            # a decoder looks for the last token that is no padding, a pair shifts its labels
            if getattr(config, name, None) is None:
                setattr(config, name, 0)
        task = task_of(job)
        return empty_model(config, task=task, dtype=dtype_of(job.dtype), observer=observer)

    def ready(self, bench: Bench) -> None:
        """Mark where the loss begins."""
        mark_loss(base_of(bench.model), bench)

    def batch(self, job: Job, *, rows: int, length: int) -> Batch:
        """Return a batch on the host."""
        return _BATCHES[task_of(job)](job, rows, length)

    def loss(
        self, bench: Bench, batch: Batch, items: torch.Tensor | None
    ) -> tuple[torch.Tensor, Any]:
        """Return the model's own loss and outputs."""
        if vision.is_torchvision(bench.job):
            return vision.torchvision_loss(bench, batch)
        given: dict[str, Any] = dict(batch)
        if items is not None:
            given["num_items_in_batch"] = items
        outputs = bench.model(**given)
        if getattr(outputs, "loss", None) is None:
            raise UnsupportedError(f"{type(base_of(bench.model)).__name__} returns no loss")
        return outputs.loss, outputs
