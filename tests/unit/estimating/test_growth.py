"""Streams of other batches, computed from a few layers."""

from __future__ import annotations

import pytest

from oomdoctor.estimating.shapes import (
    Shape,
    longest,
    shape_of,
    with_shape,
)
from oomdoctor.estimating.simulation import Simulation
from oomdoctor.memory.few_layers import layers_of, with_few_layers
from oomdoctor.memory.stream_replay import replay
from oomdoctor.model.job import EvalSpec, GenerationSpec, LoraSpec, ModelSpec
from tests.unit.estimating.doubles import CONFIG, GIB, Double, a_card, a_job, stream_of

CARD = a_card(80 * GIB)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("shape", [Shape(1, 1024), Shape(2, 4096), Shape(7, 512), Shape(16, 3000)])
def test_the_computed_peak_of_another_batch_is_the_traced_one(attention: str, shape: Shape) -> None:
    job = a_job(attention=attention)
    computed = Simulation(Double(), CARD).at(job, shape)
    traced = replay(stream_of(with_shape(job, shape)))
    assert computed.allocated == pytest.approx(traced.peak_allocated, rel=1e-4)
    assert computed.reserved == pytest.approx(traced.peak_reserved, rel=1e-3)


def test_four_traces_are_enough_for_any_number_of_batches() -> None:
    double = Double()
    engine = Simulation(double, CARD)
    for rows in range(1, 9):
        engine.at(a_job(), Shape(rows, 2048))
    layers = sorted(layers_of(one.job) or 0 for one in double.requests)
    assert layers == [2, 2, 2, 24]


def test_the_check_traces_the_whole_job_elsewhere() -> None:
    double = Double()
    peak, error = Simulation(double, CARD).checked(a_job(), Shape(8, 512))
    assert error < 1e-4
    assert peak.allocated == replay(stream_of(a_job(batch=8, seq_len=512))).peak_allocated


def test_a_model_without_a_number_of_layers_is_traced_whole() -> None:
    model = ModelSpec(name="other", config={"library": "torchvision"}, source="")
    assert with_few_layers(a_job(model=model)) is None


def test_settings_share_the_traces() -> None:
    double = Double()
    engine = Simulation(double, CARD)
    plain = engine.peak(a_job())
    other = engine.under("expandable_segments:True").peak(a_job())
    assert len(double.requests) == 1
    assert (other.settings, other.allocated) == ("expandable_segments:True", plain.allocated)


def test_lists_with_a_value_for_each_layer_become_shorter() -> None:
    config = {**CONFIG, "layer_types": ["full"] * 24, "others": [1, 2]}
    few = with_few_layers(a_job(model=ModelSpec(name="", config=config, source="")))
    assert few is not None
    assert few.model.config["num_hidden_layers"] == 8
    assert few.model.config["layer_types"] == ["full"] * 8
    assert few.model.config["others"] == [1, 2]


def test_layers_of_a_text_model_inside_another_are_cut() -> None:
    config = {"model_type": "llava", "text_config": dict(CONFIG)}
    few = with_few_layers(a_job(model=ModelSpec(name="", config=config, source="")))
    assert few is not None
    assert layers_of(few) == 2
    assert longest(few) == 8192


def test_an_adapter_on_numbered_layers_keeps_them() -> None:
    assert with_few_layers(a_job(lora=LoraSpec(layers=(20, 21)))) is None


def test_what_is_as_long_as_the_rows_stays_so() -> None:
    job = a_job(evaluation=EvalSpec(batch=4, seq_len=1024), target_len=1024)
    made = with_shape(job, Shape(3, 512))
    assert made.evaluation is not None
    assert (made.batch, made.seq_len, made.target_len) == (3, 512, 512)
    assert (made.evaluation.batch, made.evaluation.seq_len) == (4, 512)


def test_the_shape_of_generation_is_its_prompts() -> None:
    made = GenerationSpec(batch=5, prompt=100, new_tokens=20)
    job = a_job(task="generation", generation=made, optimizer=None)
    assert shape_of(job) == Shape(5, 100)
    other = with_shape(job, Shape(6, 200)).generation
    assert other is not None
    assert (other.batch, other.prompt, other.new_tokens) == (6, 200, 20)


def test_pictures_have_no_length() -> None:
    assert shape_of(a_job(task="image-classification", image_size=224)) == Shape(2, None)
