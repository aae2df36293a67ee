"""Models of text and pictures: one picture at the start of every row, as processors lay it out.

What stands for a picture differs from model to model (`picture_layouts`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from oomdoctor.record import replace
from oomdoctor.worker.twins.causal import CausalRecipe
from oomdoctor.worker.twins.picture_layouts import layout_of, picture_token

if TYPE_CHECKING:
    from oomdoctor.model.job import Job
    from oomdoctor.worker.run.bench import Bench

    Batch = dict[str, torch.Tensor]

EXTRAS = (
    *("pixel_values", "image_grid_thw", "mm_token_type_ids", "token_type_ids", "image_sizes"),
    *("aspect_ratio_ids", "aspect_ratio_mask", "cross_attention_mask"),
)
_TYPED = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "glm4v", "glm46v")
_TYPES = dict.fromkeys(_TYPED, "mm_token_type_ids") | dict.fromkeys(
    ("gemma3", "paligemma"), "token_type_ids"
)
"""What a model calls the input that tells pictures from text, where it has one."""


def sees(job: Job) -> bool:
    """Say whether the rows of a job have pictures."""
    return isinstance(job.model.config.get("vision_config"), dict) and job.image_size != 0


class VisionLanguageRecipe(CausalRecipe):
    """A causal model whose rows begin with a picture."""

    def ready(self, bench: Bench) -> None:
        """Say how many tokens a picture takes."""
        super().ready(bench)
        count = layout_of(bench.job).tokens
        if count < bench.job.seq_len:
            bench.observer.assume(f"every row has one picture, of {count} tokens")
        else:
            bench.observer.assume(f"rows have no pictures: one of {count} tokens would fill them")

    def batch(self, job: Job, *, rows: int, length: int) -> Batch:
        """Return tokens, of which the first stand for a picture, and the pictures."""
        count, pictures = layout_of(replace(job, seq_len=length), rows)
        if count >= length:
            count, pictures = 0, {}
        made = super().batch(job, rows=rows, length=length)
        picture = torch.zeros(rows, length, dtype=torch.long)
        picture[:, :count] = 1
        own = picture == 1
        made["input_ids"] = made["input_ids"].masked_fill(own, picture_token(job))
        made["labels"] = made["labels"].masked_fill(own, -100)
        kinds = {_TYPES[_kind(job)]: picture} if _kind(job) in _TYPES else {}
        return {**made, **pictures, **kinds}


def _kind(job: Job) -> str:
    return str(job.model.config.get("model_type"))
