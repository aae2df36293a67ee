"""Models of text and pictures: one picture at the start of every row, as processors lay it out.

Two layouts are known. Qwen's models get patches of pictures of any size, flat, with their grid, and
put some of them together as one token; LLaVA, Gemma 3, PaliGemma and their like get square pictures
of one size, each of a fixed number of tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.twins.batches import side_of
from oomdoctor.worker.twins.causal import CausalRecipe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.job import Job
    from oomdoctor.worker.run.bench import Bench

    Batch = dict[str, torch.Tensor]

EXTRAS = ("pixel_values", "image_grid_thw", "mm_token_type_ids", "token_type_ids")
_PATCHED = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe")
_SQUARE = ("llava", "vipllava", "gemma3", "paligemma", "internvl")
_TYPES = dict.fromkeys(_PATCHED, "mm_token_type_ids") | dict.fromkeys(
    ("gemma3", "paligemma"), "token_type_ids"
)
"""What a model calls the input that tells pictures from text, where it has one."""
_COUNTS = ("mm_tokens_per_image", "image_seq_length")


def sees(job: Job) -> bool:
    """Say whether the rows of a job have pictures."""
    return isinstance(job.model.config.get("vision_config"), dict) and job.image_size != 0


class VisionLanguageRecipe(CausalRecipe):
    """A causal model whose rows begin with a picture."""

    def ready(self, bench: Bench) -> None:
        """Say how many tokens a picture takes."""
        super().ready(bench)
        count = _layout(bench.job)[0]
        if count < bench.job.seq_len:
            bench.observer.assume(f"every row has one picture, of {count} tokens")
        else:
            bench.observer.assume(f"rows have no pictures: one of {count} tokens would fill them")

    def batch(self, job: Job, *, rows: int, length: int) -> Batch:
        """Return tokens, of which the first stand for a picture, and the pictures."""
        count, pictures = _layout(job, rows)
        if count >= length:
            count, pictures = 0, {}
        made = super().batch(job, rows=rows, length=length)
        picture = torch.zeros(rows, length, dtype=torch.long)
        picture[:, :count] = 1
        own = picture == 1
        made["input_ids"] = made["input_ids"].masked_fill(own, _token(job.model.config))
        made["labels"] = made["labels"].masked_fill(own, -100)
        kinds = {_TYPES[_kind(job)]: picture} if _kind(job) in _TYPES else {}
        return {**made, **pictures, **kinds}


def _kind(job: Job) -> str:
    return str(job.model.config.get("model_type"))


def _token(config: Mapping[str, Any]) -> int:
    """Return the id that stands for a piece of a picture."""
    for name in ("image_token_id", "image_token_index"):
        if isinstance(config.get(name), int):
            return int(config[name])
    raise UnsupportedError("the config names no token for pictures (image_token_id)")


def _layout(job: Job, rows: int = 1) -> tuple[int, Batch]:
    """Return how many tokens a picture has, and the pictures of a batch."""
    config: Mapping[str, Any] = job.model.config
    vision: dict[str, Any] = dict(config["vision_config"])
    if _kind(job) in _PATCHED:
        return _patches(job, vision, rows)
    if _kind(job) in _SQUARE:
        return _squares(job, vision, rows)
    raise UnsupportedError(f"pictures of {_kind(job)} are not traced")


def _patches(job: Job, vision: dict[str, Any], rows: int) -> tuple[int, Batch]:
    patch = int(vision.get("patch_size", 14))
    merge = int(vision.get("spatial_merge_size", 2))
    times = int(vision.get("temporal_patch_size", 2))
    channels = int(vision.get("in_channels", vision.get("in_chans", 3)))
    across = max(1, round((job.image_size or 448) / (patch * merge))) * merge
    grid = torch.tensor([[1, across, across]] * rows)
    pixels = torch.zeros(rows * across * across, channels * times * patch * patch)
    return across * across // merge**2, {"pixel_values": pixels, "image_grid_thw": grid}


def _squares(job: Job, vision: dict[str, Any], rows: int) -> tuple[int, Batch]:
    side = side_of(vision)
    config = job.model.config
    known = (config.get(name) for name in _COUNTS)
    patch = vision.get("patch_size", 14)
    patches = (side // int(patch[0] if isinstance(patch, list) else patch)) ** 2
    count = next((one for one in known if isinstance(one, int)), patches)
    return count, {"pixel_values": torch.zeros(rows, 3, side, side)}
