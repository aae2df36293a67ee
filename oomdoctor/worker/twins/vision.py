"""Models of torchvision, which return scores alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import NoTorchError, UnsupportedError
from oomdoctor.worker.twins.build import defaults
from oomdoctor.worker.twins.config import dtype_of

if TYPE_CHECKING:
    from torch import nn

    from oomdoctor.model.job import Job
    from oomdoctor.worker.run.bench import Bench

    Batch = dict[str, torch.Tensor]

_NOT_OURS = frozenset({"library", "name", "model_type", "num_labels", "image_size"})


def is_torchvision(job: Job) -> bool:
    """Say whether a job's model is one of torchvision."""
    return job.model.config.get("library") == "torchvision"


def torchvision_model(job: Job) -> nn.Module:
    """Return a model of torchvision without storage."""
    try:
        from torchvision.models import get_model
    except (ImportError, RuntimeError) as error:  # the second where it was built for another torch
        raise NoTorchError(
            f"torchvision is not there: {error}", hint="pip install torchvision"
        ) from error
    name = str(job.model.config.get("name", job.model.name))
    given = {key: value for key, value in job.model.config.items() if key not in _NOT_OURS}
    given.setdefault("num_classes", job.labels or 1000)
    with defaults(dtype_of(job.dtype)), torch.device("meta"):
        try:
            return get_model(name, weights=None, **given)
        except (ValueError, TypeError) as error:
            raise UnsupportedError(f"torchvision makes no {name}: {error}") from error


def torchvision_loss(bench: Bench, batch: Batch) -> tuple[torch.Tensor, Any]:
    """Return the cross-entropy of the classes, and their scores."""
    scores = bench.model(batch["pixel_values"])
    bench.part("loss")
    scores = getattr(scores, "logits", scores)  # Inception and GoogLeNet return a tuple with it
    return torch.nn.functional.cross_entropy(scores, batch["labels"]), scores
