"""What a task brings to a run: its model, its batches and its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from oomdoctor.worker.errors import UnsupportedError

if TYPE_CHECKING:
    import torch
    from torch import nn

    from oomdoctor.model.job import Job
    from oomdoctor.worker.observer import Observer
    from oomdoctor.worker.run.bench import Bench

    Batch = dict[str, torch.Tensor]


class Recipe(Protocol):
    """One task. `shifts` says that the label of a token is the next one."""

    shifts: bool

    def model(self, job: Job, observer: Observer) -> nn.Module:
        """Return the model without storage."""

    def ready(self, bench: Bench) -> None:
        """Finish what the loss needs once the model is on the device (patches, a reference)."""

    def batch(self, job: Job, *, rows: int, length: int) -> Batch:
        """Return a batch on the host."""

    def loss(
        self, bench: Bench, batch: Batch, items: torch.Tensor | None
    ) -> tuple[torch.Tensor, Any]:
        """Return the loss and what the model returned; `items` counts the labels of a step."""


LABELLED = (
    *("classification", "token-classification", "masked-lm", "seq2seq"),
    "image-classification",
)


def _causal(job: Job) -> Recipe:
    from oomdoctor.worker.twins.vision_language import VisionLanguageRecipe, sees

    if sees(job):
        return VisionLanguageRecipe()
    from oomdoctor.worker.twins.causal import CausalRecipe

    return CausalRecipe()


def recipe_of(job: Job) -> Recipe:
    """Return the recipe of a job's task; UnsupportedError where it cannot be traced."""
    if job.task in ("pretrain", "sft", "generation", "forward"):
        return _causal(job)
    if job.task in LABELLED:
        from oomdoctor.worker.twins.labelled import LabelledRecipe

        return LabelledRecipe()
    if job.task == "embedding":
        from oomdoctor.worker.twins.embedding import EmbeddingRecipe

        return EmbeddingRecipe()
    if job.task in ("dpo", "orpo", "kto", "reward"):
        from oomdoctor.worker.twins.preference import preference_recipe

        return preference_recipe(job)
    if job.task == "grpo":
        from oomdoctor.worker.twins.grpo import GrpoRecipe

        return GrpoRecipe()
    raise UnsupportedError(f"the task {job.task} is not traced")
