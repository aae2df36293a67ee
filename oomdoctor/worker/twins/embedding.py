"""Embeddings of sentences, trained on pairs as sentence-transformers does (5.1).

Each column of a batch goes through the model by itself (`SentenceTransformerTrainer.compute_loss`),
its tokens are averaged under the mask (`Pooling`), and every anchor is to be nearest to its own
positive among all of the batch (`MultipleNegativesRankingLoss`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.twins import batches
from oomdoctor.worker.twins.build import empty_model
from oomdoctor.worker.twins.config import config_of, dtype_of

if TYPE_CHECKING:
    from torch import nn

    from oomdoctor.model.job import Job
    from oomdoctor.worker.observer import Observer
    from oomdoctor.worker.run.bench import Bench

    Batch = dict[str, torch.Tensor]

COLUMNS = ("anchor", "positive")
_SCALE = 20.0
_LEAST = 1e-9


class EmbeddingRecipe:
    """Pairs of sentences whose embeddings come near to each other; `batch` counts pairs."""

    shifts = False

    def model(self, job: Job, observer: Observer) -> nn.Module:
        """Return the model without storage."""
        config = config_of(job, observer)
        return empty_model(config, task=job.task, dtype=dtype_of(job.dtype), observer=observer)

    def ready(self, bench: Bench) -> None:
        """Say what is paired."""
        bench.observer.assume("batches of pairs of sentences, with the others of it as negatives")

    def batch(self, job: Job, *, rows: int, length: int) -> Batch:
        """Return two columns of sentences."""
        text = batches.text(job, rows, length)
        return {f"{one}_{name}": value for one in COLUMNS for name, value in text.items()}

    def loss(
        self,
        bench: Bench,
        batch: Batch,
        items: torch.Tensor | None,  # noqa: ARG002 - the protocol's
    ) -> tuple[torch.Tensor, Any]:
        """Return the loss of a batch; what the models returned ends with it."""
        features = [
            {
                name.removeprefix(f"{one}_"): value
                for name, value in batch.items()
                if name.startswith(one)
            }
            for one in COLUMNS
        ]
        anchors, positives = (_embedded(bench, one) for one in features)
        bench.part("loss")
        scores = _cosine(anchors, positives) * _SCALE
        own = torch.arange(len(scores), device=scores.device)
        return torch.nn.functional.cross_entropy(scores, own), None


def _embedded(bench: Bench, features: Batch) -> torch.Tensor:
    """Return the mean of the tokens; the model's last states stay among the features."""
    hidden = bench.model(**features).last_hidden_state
    mask = features["attention_mask"]
    features["token_embeddings"] = hidden
    weights = mask.unsqueeze(-1).expand(hidden.size()).to(hidden.dtype)
    total = torch.sum(hidden * weights, 1)
    mean: torch.Tensor = total / torch.clamp(weights.sum(1), min=_LEAST)
    features["sentence_embedding"] = mean
    return mean


def _cosine(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    normal = torch.nn.functional.normalize
    return torch.mm(normal(first, p=2, dim=1), normal(second, p=2, dim=1).transpose(0, 1))
