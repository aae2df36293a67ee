"""Pictures as models take them: the tokens of each layout, and a trace that sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.record import replace
from oomdoctor.worker.fake.trace import trace
from oomdoctor.worker.twins.picture_layouts import layout_of, picture_token
from tests.worker.fake.cards import A100
from tests.worker.jobs import JOB, LLAVA, TEXT, TOWER, made_up

if TYPE_CHECKING:
    from oomdoctor.model.job import ModelSpec

_LLAMA = {"model_type": "llama", **TEXT}
_CLIP = {"model_type": "clip_vision_model", "projection_dim": 64, **TOWER}
NEXT = made_up(
    model_type="llava_next",
    image_token_index=2999,
    image_grid_pinpoints=[[56, 112], [112, 56], [112, 112]],
    text_config=_LLAMA,
    vision_config=_CLIP,
)
SIZED = made_up(
    model_type="mistral3",
    image_token_index=2999,
    text_config={**_LLAMA, "model_type": "mistral"},
    vision_config={"model_type": "pixtral", "head_dim": 16, **TOWER},
)
PACKED = made_up(
    model_type="idefics3",
    image_token_id=2999,
    scale_factor=2,
    text_config=_LLAMA,
    vision_config={"model_type": "idefics3_vision", **TOWER},
)
CROSSED = made_up(
    model_type="mllama",
    image_token_index=3000,
    text_config={
        **_LLAMA,
        "model_type": "mllama_text_model",
        "cross_attention_layers": [1],
        "pad_token_id": 0,
    },
    vision_config={
        "model_type": "mllama_vision_model",
        **TOWER,
        "num_global_layers": 1,
        "vision_output_dim": 128,
        "intermediate_layers_indices": [0],
        "attention_heads": 4,
    },
)
SEEING = replace(JOB, dtype="bf16", seq_len=128)
LAYOUTS = [
    (NEXT, 16 + 8 * 9, (1, 5, 3, 56, 56)),
    (SIZED, 16, (1, 3, 112, 112)),
    (PACKED, 4, (1, 1, 3, 56, 56)),
    (CROSSED, 1, (1, 1, 4, 3, 56, 56)),
]


@pytest.mark.parametrize(
    ("model", "count", "pixels"), LAYOUTS, ids=lambda one: getattr(one, "name", "")
)
def test_each_layout_has_its_tokens_and_is_traced(
    model: ModelSpec, count: int, pixels: tuple[int, ...]
) -> None:
    job = replace(SEEING, model=model, image_size=112 if model is SIZED else 56)
    layout = layout_of(job)
    stream = trace(job, A100)

    assert (layout.tokens, tuple(layout.inputs["pixel_values"].shape)) == (count, pixels)
    assert f"every row has one picture, of {count} tokens" in stream.assumptions
    assert any("vision" in one.module for one in stream.allocations)


def test_what_a_config_leaves_out_is_as_its_class_has_it() -> None:
    bare = {name: value for name, value in LLAVA.config.items() if name != "image_token_index"}
    job = replace(SEEING, model=replace(LLAVA, config=bare))

    assert picture_token(job) == 32000
