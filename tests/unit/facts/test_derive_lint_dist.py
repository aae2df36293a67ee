"""References, engines, merging, lengths and cards as lint derives them."""

from __future__ import annotations

import pytest

from oomdoctor.facts.derivation import apply
from oomdoctor.facts.derive import derive as derive_facts
from oomdoctor.facts.derive_lint_dist import STEPS
from oomdoctor.model.enums import Origin
from tests.unit.facts.stated import book

Values = dict[str, "bool | int | float | str"]
WHOLE = ("train-config",)


def value(key: str, facts: Values, *, closes: tuple[str, ...] = ()) -> object:
    return apply(book(facts, closes=closes), STEPS).value(key)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Qwen/Qwen3-8B-FP8", True),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", True),
        ("deepseek-ai/DeepSeek-V3", True),
        ("deepseek-ai/DeepSeek-R1-0528", True),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", False),
        ("Qwen/Qwen3-8B", False),
    ],
)
def test_checkpoints_in_fp8_blocks_are_known_by_their_name(name: str, expected: bool) -> None:
    assert value("model.fp8_blocks", {"model.name": name}) is expected


@pytest.mark.parametrize("name", ["neuralmagic/Meta-Llama-3-8B-FP8", "zai-org/GLM-4.5-FP8"])
def test_fp8_of_another_kind_is_left_open(name: str) -> None:
    facts: Values = {"model.name": name, "quant.kind": "fp8"}

    assert value("model.fp8_blocks", facts) is None


def test_a_models_own_config_tells_its_blocks() -> None:
    settings = "quantization_config.quant_method = fp8\n"
    settings += "quantization_config.weight_block_size = 128,128"

    assert value("model.fp8_blocks", {"job.settings": settings}) is True


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"ref.needed": True, "lora.on": False, "train.full_finetune": True}, True),
        ({"ref.needed": True, "lora.on": True}, False),
        ({"ref.needed": True, "lora.on": False, "ref.separate": False}, False),
        ({"lora.on": True, "ref.separate": True}, True),
        (
            {
                "ref.needed": True,
                "lora.on": False,
                "train.full_finetune": True,
                "job.settings": "pref_loss = simpo",
            },
            False,
        ),
        ({"lora.on": False, "train.full_finetune": True}, None),
        ({"ref.needed": True}, None),
    ],
)
def test_a_reference_is_loaded_where_no_adapter_stands_for_it(
    facts: Values, expected: bool | None
) -> None:
    assert value("ref.loaded", facts) is expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"rl.use_vllm": True, "env.trl": "1.16.0"}, True),
        ({"rl.use_vllm": True, "env.trl": "0.24.0"}, False),
        ({"rl.use_vllm": False}, False),
        (
            {
                "rl.use_vllm": True,
                "env.trl": "1.16.0",
                "gen.colocated_engine": False,
                "job.settings": "vllm_mode = server",
            },
            False,
        ),
        ({"env.trl": "1.16.0"}, None),
    ],
)
def test_the_engine_works_on_the_trainers_card_by_word_or_by_version(
    facts: Values, expected: bool | None
) -> None:
    assert value("rl.colocated", facts) is expected


def test_the_share_of_the_engine_is_assumed_where_it_is_not_stated() -> None:
    made = apply(book({"rl.use_vllm": True, "env.trl": "1.16.0"}), STEPS)

    found = made.get("rl.engine_share")
    assert found is not None
    assert (found.value, found.origin) == (0.3, Origin.ASSUMED)
    facts: Values = {"gen.engine_share": 0.5, "rl.use_vllm": True, "env.trl": "1.16.0"}
    assert value("rl.engine_share", facts) == 0.5


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"job.calls": "call model.merge_and_unload", "dist.device_map": "{'': 0}"}, True),
        ({"job.calls": "call merge_and_unload", "dist.device_map": "cuda:0"}, True),
        ({"job.calls": "call model.merge_and_unload", "dist.device_map": "cpu"}, False),
        ({"job.calls": "call model.merge_and_unload", "dist.device_map": "auto"}, False),
        ({"job.calls": "call model.generate", "dist.device_map": "cuda"}, None),
        ({"job.calls": "call model.merge_and_unload"}, None),
        ({"job.task": "merge", "job.settings": "export_device = auto"}, True),
        ({"job.task": "merge", "job.settings": "export_device = cpu"}, None),
    ],
)
def test_merging_happens_where_the_base_is_loaded(facts: Values, expected: bool | None) -> None:
    assert value("merge.on_gpu", facts) is expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"train.padding": "longest"}, True),
        ({"train.padding": "max_length"}, False),
        ({"job.settings": "pad_to_sequence_len = true"}, False),
        ({"train.padding_free": True, "train.packing": True}, True),
        ({"train.packing": True}, False),
        ({"train.packing": False, "job.framework": "axolotl", "job.task": "sft"}, True),
        ({"train.packing": False, "job.framework": "transformers", "job.task": "sft"}, None),
        ({"job.framework": "trl", "job.task": "sft"}, None),
        ({}, None),
    ],
)
def test_batches_vary_in_length_where_rows_are_padded_to_the_longest(
    facts: Values, expected: bool | None
) -> None:
    assert value("train.varying_shapes", facts) is expected


def test_a_whole_config_without_packing_pads_to_the_longest() -> None:
    facts: Values = {"job.framework": "trl", "job.task": "sft"}

    assert value("train.varying_shapes", facts, closes=WHOLE) is True


def test_a_card_is_compared_with_what_its_name_usually_has() -> None:
    made = apply(derive_facts(book({"gpu.name": "RTX 4090", "gpu.total": "12 GiB"})), STEPS)

    assert made.value("gpu.usual_share") == pytest.approx(0.5)


def test_the_share_of_vllm_is_its_default_in_a_whole_command() -> None:
    facts: Values = {"job.framework": "vllm"}

    assert value("serve.share", facts, closes=("serve-config",)) == 0.92
    assert value("serve.share", facts) is None
    assert value("serve.share", {**facts, "serve.utilization": 0.8}) == 0.8
