"""In which dtype is trained, and what a quantised base computes and stores in."""

from __future__ import annotations

import pytest

from oomdoctor.facts.derivation import apply
from oomdoctor.facts.derive_lint_precision import STEPS
from oomdoctor.model.enums import Origin
from tests.unit.facts.stated import book

LORA = {"job.framework": "transformers", "lora.on": True, "load.dtype": "fp16"}


def value(facts: dict[str, bool | int | float | str], key: str, *closed: str) -> object:
    return apply(book(facts).add((), closes=closed), STEPS).value(key)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({**LORA, "env.peft": "0.21.2"}, "fp32"),
        ({**LORA, "env.peft": "0.11.1"}, "fp16"),
        ({**LORA, "env.peft": "0.12.0"}, None),
        ({**LORA, "env.peft": "0.21.2", "lora.modules_to_save": "lm_head"}, "fp16"),
        ({**LORA, "job.settings": "get_peft_model.autocast_adapter_dtype = false"}, "fp16"),
        ({**LORA, "quant.kind": "bnb4", "env.peft": "0.10.0"}, "fp32"),
        ({**LORA, "job.framework": "trl", "quant.kind": "bnb4", "env.trl": "1.16.0"}, "bf16"),
        ({**LORA, "job.framework": "trl", "quant.kind": "bnb4", "env.trl": "0.24.0"}, "fp32"),
        ({**LORA, "job.framework": "llamafactory", "lora.modules_to_save": "lm_head"}, None),
        ({**LORA, "lora.on": False, "train.full_finetune": True}, "fp16"),
        ({**LORA, "lora.on": False, "train.full_finetune": False}, None),
        ({**LORA}, None),
    ],
)
def test_adapters_are_fp32_and_whole_modules_as_the_base(
    facts: dict[str, bool | int | float | str], expected: str | None
) -> None:
    assert value(facts, "train.trained_dtype") == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"job.framework": "axolotl", "train.amp": "bf16"}, "bf16"),
        ({"job.framework": "llamafactory", "train.base_dtype": "fp16"}, "fp16"),
        ({"job.framework": "trl", "load.by_name": True, "train.base_dtype": "bf16"}, "bf16"),
        ({"job.framework": "trl", "load.by_name": True}, "fp32"),
        ({"job.framework": "trl", "load.by_name": False}, None),
        ({"job.framework": "transformers"}, None),
    ],
)
def test_frameworks_choose_the_dtype_of_4_bit_products(
    facts: dict[str, bool | int | float | str], expected: str | None
) -> None:
    assert value({**facts, "quant.kind": "bnb4"}, "quant.compute_dtype") == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"job.framework": "axolotl", "job.settings": "adapter = qlora"}, "bf16"),
        ({"job.framework": "axolotl", "job.settings": "adapter = lora"}, None),
        ({"job.framework": "llamafactory", "train.amp": "fp16"}, "fp16"),
        ({"job.framework": "transformers"}, None),
    ],
)
def test_frameworks_choose_the_tensors_that_4_bit_weights_lie_in(
    facts: dict[str, bool | int | float | str], expected: str | None
) -> None:
    assert value({**facts, "quant.kind": "bnb4"}, "quant.storage") == expected
    assert value({**facts, "quant.kind": "bnb8"}, "quant.storage") is None


def test_tf32_is_off_where_a_whole_config_does_not_name_it() -> None:
    facts: dict[str, bool | int | float | str] = {"job.framework": "transformers"}
    made = apply(book(facts).add((), closes=["train-config"]), STEPS).get("precision.tf32_on")

    assert made is not None
    assert (made.value, made.origin) == (False, Origin.ASSUMED)
    assert value(facts, "precision.tf32_on") is None
    assert value({**facts, "train.tf32": True}, "precision.tf32_on") is True


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt2", False),
        ("meta-llama/Llama-2-7b-chat-hf", False),
        ("NousResearch/Meta-Llama-3-8B", False),
        ("meta-llama/Llama-3.1-8B-Instruct", False),
        ("mistralai/Mistral-7B-v0.1", False),
        ("my/llama-2-7b-tuned", None),
        ("Qwen/Qwen2.5-7B", None),
    ],
)
def test_families_published_without_a_pad_token_are_known(name: str, expected: bool | None) -> None:
    assert value({"model.name": name}, "model.pad_token") is expected


def test_families_that_overflow_fp16_are_known() -> None:
    t5 = value({"model.architecture": "T5ForConditionalGeneration"}, "model.bf16_trained")

    assert t5 is True
    assert value({"model.architecture": "LlamaForCausalLM"}, "model.bf16_trained") is False
