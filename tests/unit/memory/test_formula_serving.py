"""What engines take, by formula."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.facts import model_configs
from oomdoctor.memory import formula_serving
from oomdoctor.memory.formula_shape import shape_of
from oomdoctor.model.job import Job, ModelSpec

GIB = 1 << 30


def spec(name: str) -> ModelSpec:
    """Return a model of the table."""
    known = model_configs.lookup(name)
    assert known is not None
    return ModelSpec(name=name, config=known.config, source="table", params=known.params)


def serving(name: str, **given: Any) -> Job:
    """Return a job that serves a model."""
    return Job(model=spec(name), task="serving", optimizer=None, **given)


def test_the_weights_of_a_published_start() -> None:
    job = serving("meta-llama/Meta-Llama-3-8B")
    found = formula_serving.weight_bytes(job, shape_of(job.model.config))

    assert found / GIB == pytest.approx(14.96, rel=0.005)


def test_a_latent_is_all_that_mla_caches() -> None:
    shape = shape_of(spec("deepseek-ai/DeepSeek-V2-Lite").config)

    assert formula_serving.token_bytes(shape) == 27 * (512 + 64) * 2


@pytest.mark.parametrize(("file_type", "gib"), [("q4_k_m", 4.58), ("q8_0", 7.95), ("f16", 14.96)])
def test_a_file_type_has_its_bits_for_each_weight(file_type: str, gib: float) -> None:
    # sizes of published files of Llama-3.1-8B
    found = formula_serving.local_buffers(
        spec("meta-llama/Llama-3.1-8B"), file_type=file_type, context=8192
    )
    table = 128256 * 4096 * formula_serving.GGUF_BITS[file_type] / 8  # stays in main memory

    assert (found.weights + table) / GIB == pytest.approx(gib, rel=0.06)
    assert found.cache == 2 * 32 * 1024 * 2 * 8192
    assert found.total > found.weights + found.cache


def test_an_unknown_file_type_is_refused() -> None:
    with pytest.raises(ValueError, match="q9"):
        formula_serving.local_buffers(spec("meta-llama/Llama-3.1-8B"), file_type="q9", context=512)


def test_half_of_the_layers_takes_half_of_the_bytes() -> None:
    whole = formula_serving.local_buffers(
        spec("meta-llama/Llama-3.1-8B"), file_type="q4_0", context=4096
    )
    half = formula_serving.local_buffers(
        spec("meta-llama/Llama-3.1-8B"), file_type="q4_0", context=4096, layers_on_card=16
    )

    assert half.cache == whole.cache // 2
    assert half.weights < whole.weights / 2


def test_a_compute_buffer_holds_logits_and_one_hidden_state() -> None:
    # a published log: 30 layers, a context of 512, 105.00 MiB and 180.00 MiB
    config = {
        "model_type": "llama",
        "num_hidden_layers": 30,
        "hidden_size": 3072,
        "intermediate_size": 8192,
        "num_attention_heads": 24,
        "num_key_value_heads": 24,
        "vocab_size": 50688,
    }
    found = formula_serving.local_buffers(
        ModelSpec(name="a network", config=config, source="a log"), file_type="f16", context=512
    )

    assert found.compute == 105 << 20
    assert found.cache == 180 << 20


@pytest.mark.parametrize(
    ("name", "printed"), [("meta-llama/Meta-Llama-3-8B", 1.26), ("Qwen/Qwen2.5-7B", 1.42)]
)
def test_the_sampler_is_the_peak_of_a_profile(name: str, printed: float) -> None:
    found = formula_serving.profile_bytes(shape_of(spec(name).config), tokens=4096, sequences=256)

    assert found / GIB == pytest.approx(printed, rel=0.12)
