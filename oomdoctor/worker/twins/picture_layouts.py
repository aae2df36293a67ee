"""How models take pictures: the tensors of one picture in every row, and the tokens it stands for.

| layout | models | what a processor hands over |
|---|---|---|
| patches | Qwen-VL, GLM-V | flat patches of any picture, with their grid; some join to a token |
| square | LLaVA, Gemma 3, InternVL, BLIP-2 | pictures of one size, a fixed number of tokens |
| sized | Pixtral, Mistral 3 | a picture of any size with its size, a mark at the end of each row |
| tiled | LLaVA-NeXT | the whole and four tiles of it |
| packed | Idefics, SmolVLM | a list of pictures for each row |
| crossed | Llama 3.2 Vision | tiles that text looks at through layers of its own; one token |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.twins.batches import side_of
from oomdoctor.worker.twins.config import whole_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.model.job import Job

    Batch = dict[str, torch.Tensor]
    Part = Mapping[str, Any]

_ANY_SIDE = 448  # pixels of a side where a model takes any size and none is given
_COUNTS = ("mm_tokens_per_image", "image_seq_length", "num_query_tokens")
_LATENTS = 64  # tokens of Idefics 2 for each picture (perceiver_config.resampler_n_latents)
_TILES = 4


class Layout(NamedTuple):
    """Tokens that stand for the picture of a row, and what the model gets beside the tokens."""

    tokens: int
    inputs: Batch


def layout_of(job: Job, rows: int = 1) -> Layout:
    """Return the layout of a job's pictures; UnsupportedError for a model that has another."""
    config = whole_config(job.model)
    kind = str(config.get("model_type"))
    vision: Part = config["vision_config"]
    make = _LAYOUTS.get(kind)
    if kind == "llava" and vision.get("model_type") == "pixtral":
        make = _sized
    if make is None:
        raise UnsupportedError(f"pictures of {kind} are not traced")
    return make(job, config, rows)


def picture_token(job: Job) -> int:
    """Return the id that stands for a piece of a picture."""
    config = whole_config(job.model)
    for name in ("image_token_id", "image_token_index"):
        if isinstance(config.get(name), int):
            return int(config[name])
    raise UnsupportedError("the config names no token for pictures (image_token_id)")


def _patches(job: Job, config: Part, rows: int) -> Layout:
    vision: Part = config["vision_config"]
    patch = int(vision.get("patch_size", 14))
    merge = int(vision.get("spatial_merge_size", 2))
    times = int(vision.get("temporal_patch_size", 2))
    channels = int(vision.get("in_channels", vision.get("in_chans", 3)))
    across = max(1, round((job.image_size or _ANY_SIDE) / (patch * merge))) * merge
    grid = torch.tensor([[1, across, across]] * rows)
    pixels = torch.zeros(rows * across * across, channels * times * patch * patch)
    count = across * across // merge**2
    return Layout(count, {"pixel_values": pixels, "image_grid_thw": grid})


def _squares(job: Job, config: Part, rows: int) -> Layout:
    del job
    vision: Part = config["vision_config"]
    side = side_of(vision)
    known = (config.get(name) for name in _COUNTS)
    patch = vision.get("patch_size", 14)
    patches = (side // int(patch[0] if isinstance(patch, list) else patch)) ** 2
    count = next((one for one in known if isinstance(one, int)), patches)
    return Layout(count, {"pixel_values": torch.zeros(rows, 3, side, side)})


def _sized(job: Job, config: Part, rows: int) -> Layout:
    vision: Part = config["vision_config"]
    merge = int(_number(config.get("spatial_merge_size"), 1))
    step = int(vision.get("patch_size", 16)) * merge
    across = max(1, round((job.image_size or _ANY_SIDE) / step))
    side = across * step
    sizes = torch.tensor([[side, side]] * rows)
    return Layout(
        across * across, {"pixel_values": torch.zeros(rows, 3, side, side), "image_sizes": sizes}
    )


def _tiled(job: Job, config: Part, rows: int) -> Layout:
    """A picture as large as two by two tiles; behind each of its rows of patches stands a mark."""
    del job
    vision: Part = config["vision_config"]
    side = side_of(vision)
    across = side // int(vision.get("patch_size", 14))
    whole = across * across
    tiles = 2 * across * (2 * across + 1)
    sizes = torch.tensor([[2 * side, 2 * side]] * rows)
    pixels = torch.zeros(rows, 1 + _TILES, 3, side, side)
    return Layout(whole + tiles, {"pixel_values": pixels, "image_sizes": sizes})


def _packed(job: Job, config: Part, rows: int) -> Layout:
    del job
    vision: Part = config["vision_config"]
    side = side_of(vision)
    factor = config.get("scale_factor")
    across = side // int(vision.get("patch_size", 14))
    known = config.get("perceiver_config", {}).get("resampler_n_latents")
    count = (
        across * across // factor**2 if isinstance(factor, int) else int(_number(known, _LATENTS))
    )
    # ones: a picture of zeros is left out as padding
    return Layout(count, {"pixel_values": torch.ones(rows, 1, 3, side, side)})


def _crossed(job: Job, config: Part, rows: int) -> Layout:
    vision: Part = config["vision_config"]
    side = side_of(vision)
    tiles = int(vision.get("max_num_tiles", _TILES))
    return Layout(
        1,
        {
            "pixel_values": torch.zeros(rows, 1, tiles, 3, side, side),
            "aspect_ratio_ids": torch.ones(rows, 1, dtype=torch.long),
            "aspect_ratio_mask": torch.ones(rows, 1, tiles, dtype=torch.long),
            "cross_attention_mask": torch.ones(rows, job.seq_len, 1, tiles, dtype=torch.long),
        },
    )


def _number(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) else otherwise


_LAYOUTS: dict[str, Callable[[Job, Part, int], Layout]] = {
    **dict.fromkeys(
        ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "glm4v", "glm46v"), _patches
    ),
    **dict.fromkeys(("llava", "vipllava", "gemma3", "paligemma", "internvl", "blip-2"), _squares),
    "mistral3": _sized,
    "llava_next": _tiled,
    **dict.fromkeys(("idefics2", "idefics3", "smolvlm"), _packed),
    "mllama": _crossed,
}
