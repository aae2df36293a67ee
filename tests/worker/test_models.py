"""Models of other kinds: of pictures and text, of experts, of sentences, of torchvision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.memory.stream_replay import replay
from oomdoctor.model.job import GenerationSpec, Job, ModelSpec
from oomdoctor.record import replace
from oomdoctor.worker.errors import NoTorchError, UnsupportedError
from oomdoctor.worker.fake.trace import trace
from oomdoctor.worker.run.recipe import recipe_of
from oomdoctor.worker.twins.build import task_of
from tests.worker.fake.cards import A100
from tests.worker.jobs import (
    BERT,
    CONFIG,
    GEMMA_3,
    GPT_OSS,
    JOB,
    LLAVA,
    MIXTRAL,
    QWEN_MOE,
    QWEN_VL,
    T5,
    VIT,
    made_up,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.worker.ledger import Watching

    Run = Callable[[Job], Watching]

SEEING = replace(JOB, dtype="bf16", image_size=56, seq_len=48)
PICTURES = [(QWEN_VL, 4), (LLAVA, 16), (GEMMA_3, 4)]
EVEN = "what values computed on the card choose (experts, for one) was assumed to be spread evenly"


@pytest.mark.parametrize(("model", "count"), PICTURES, ids=lambda one: getattr(one, "name", ""))
def test_rows_begin_with_a_picture(model: ModelSpec, count: int) -> None:
    job = replace(SEEING, model=model)
    batch = recipe_of(job).batch(job, rows=2, length=48)
    stream = trace(job, A100)

    assert (batch["input_ids"] == 2999).sum().item() == 2 * count
    assert f"every row has one picture, of {count} tokens" in stream.assumptions
    assert any("vision" in one.module or "visual" in one.module for one in stream.allocations)


def test_rows_too_short_for_a_picture_have_none() -> None:
    stream = trace(replace(SEEING, model=LLAVA, seq_len=16), A100, phases=["step 1"])

    assert "rows have no pictures: one of 16 tokens would fill them" in stream.assumptions


def test_larger_pictures_have_more_patches_and_tokens() -> None:
    small, large = (
        recipe_of(job).batch(job, rows=1, length=200)
        for job in (replace(SEEING, model=QWEN_VL, image_size=side) for side in (112, 224))
    )

    assert (len(large["pixel_values"]), len(small["pixel_values"])) == (256, 64)
    assert large["mm_token_type_ids"].sum() == 4 * small["mm_token_type_ids"].sum()


def test_answers_to_a_picture_begin_with_it() -> None:
    spec = GenerationSpec(batch=1, prompt=32, new_tokens=9)
    job = replace(SEEING, model=LLAVA, task="generation", optimizer=None, generation=spec)

    stream = trace(job, A100)

    seen = {one.module for one in stream.allocations if one.phase == "generation"}
    assert any("vision" in module for module in seen)


def test_pictures_of_an_unknown_layout_are_named() -> None:
    text = {name: value for name, value in CONFIG.items() if name != "model_type"}
    vision = {"model_type": "clip_vision_model", "image_size": 56}
    model = made_up(model_type="llava_onevision", vision_config=vision, text_config=text)

    with pytest.raises(UnsupportedError, match="llava_onevision"):
        recipe_of(job := replace(SEEING, model=model)).batch(job, rows=1, length=48)


@pytest.mark.parametrize("model", [MIXTRAL, QWEN_MOE, GPT_OSS], ids=lambda one: one.name)
def test_tokens_are_spread_evenly_over_experts(model: ModelSpec) -> None:
    stream = trace(replace(JOB, model=model, dtype="bf16"), A100)

    phases = {one.name: one.allocated_bytes for one in replay(stream).phases}
    assert EVEN in stream.assumptions
    assert phases["step 2"] > phases["load"] * 3


def test_pairs_of_sentences_are_embedded_one_after_the_other(run: Run) -> None:
    job = replace(JOB, model=BERT, task="embedding")
    batch = recipe_of(job).batch(job, rows=2, length=32)
    pairs, masked = (run(one).peaks for one in (job, replace(job, batch=4)))

    assert sorted(name.partition("_")[0] for name in batch) == 2 * ["anchor"] + 2 * ["positive"]
    assert masked["step 1/backward"] > pairs["step 1/backward"]


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("BertForTokenClassification", "token-classification"),
        ("BertForSequenceClassification", "classification"),
        (None, "classification"),
    ],
)
def test_classes_of_tokens_are_told_from_those_of_texts(
    architecture: str | None, task: str
) -> None:
    job = replace(
        JOB,
        model=replace(BERT, architecture=architecture),
        task="classification",
        labels=3,
    )
    labels = recipe_of(job).batch(job, rows=2, length=32)["labels"]

    assert (task_of(job), labels.dim()) == (task, 2 if "token" in task else 1)


def test_a_single_label_is_a_number_to_come_near_to(run: Run) -> None:
    watching = run(replace(JOB, model=BERT, task="classification", labels=1))

    assert "step 2/backward" in watching.peaks


def torchvision(**config: Any) -> Job:
    model = ModelSpec(name="a net", config={"library": "torchvision", **config}, source="test")
    return replace(JOB, model=model, task="image-classification", labels=10, image_size=32)


def test_models_of_torchvision_are_built_by_name(run: Run) -> None:
    pytest.importorskip("torchvision")

    weights = run(torchvision(name="resnet18")).sizes["weights"]

    assert weights == pytest.approx(11_181_642 * 4, rel=0.01)


def test_torchvision_that_is_missing_or_knows_no_such_model_is_named(run: Run) -> None:
    with pytest.raises((NoTorchError, UnsupportedError), match="torchvision"):
        run(torchvision(name="odd"))


def test_an_encoder_decoder_answers_although_its_config_names_no_first_token() -> None:
    spec = GenerationSpec(batch=1, prompt=16, new_tokens=4)
    stream = trace(replace(JOB, model=T5, task="generation", generation=spec), A100)

    assert any(one.phase == "generation" for one in stream.allocations)


def test_a_model_that_has_no_such_task_is_named_with_it() -> None:
    spec = GenerationSpec(batch=1, prompt=16, new_tokens=4)
    vit = replace(JOB, model=VIT, task="generation", generation=spec)

    with pytest.raises(UnsupportedError, match=r"no model of the type 'vit' that is ForCausalLM"):
        trace(vit, A100)
