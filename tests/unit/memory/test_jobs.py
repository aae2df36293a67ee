"""The job out of facts: what is said, what is assumed, what is missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.facts.book import FactBook
from oomdoctor.memory.jobs import JobReading, completed, job_of, job_of_completed
from oomdoctor.memory.jobs_task import with_framework
from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from oomdoctor.model.job import Job

LLAMA = "meta-llama/Llama-2-7b-hf"


def reading(**said: Any) -> JobReading:
    """Read a job of stated facts; two underscores stand for the dot of a key."""
    facts = [
        Fact(key=key.replace("__", "."), value=value, origin=Origin.STATED)
        for key, value in said.items()
    ]
    return job_of(FactBook().add(facts, closes=("train-config",)))


def job(**said: Any) -> Job:
    """Return the job, which must be there."""
    found = reading(model__name=LLAMA, **said)
    assert found.job is not None, found.missing
    return found.job


def test_a_name_of_the_table_gives_the_whole_config_of_its_model() -> None:
    model = job().model

    assert model.config["model_type"] == "llama"
    assert model.config["hidden_size"] == 4096
    assert model.params == 6738415616


def test_without_a_model_there_is_no_job_and_the_flag_is_named() -> None:
    found = reading(train__micro_batch=1)

    assert found.job is None
    assert any("--model" in one for one in found.missing)


def test_an_unknown_model_asks_for_its_config() -> None:
    found = reading(model__name="nobody/own-model")

    assert found.job is None
    assert any("config.json" in one for one in found.missing)


def test_a_config_of_the_network_stands_for_the_table() -> None:
    config = {"model_type": "qwen3", "hidden_size": 64, "architectures": ["Qwen3ForCausalLM"]}
    found = reading(model__config=json.dumps(config))

    assert found.job is not None
    assert found.job.model.config == config
    assert found.job.model.architecture == "Qwen3ForCausalLM"


def test_sharding_over_an_unknown_number_of_cards_is_missing() -> None:
    found = reading(model__name=LLAMA, dist__kind="zero3")

    assert found.job is None
    assert any("--gpus 8" in one for one in found.missing)
    assert job(dist__kind="zero3", dist__world_size=8).sharding.ranks == 8


def test_an_adapter_of_a_quantised_base_is_qlora() -> None:
    made = job(lora__on=True, lora__rank=16, lora__targets="all", quant__kind="bnb4")

    assert made.method == "qlora"
    assert made.lora is not None
    assert made.lora.targets == ("all-linear",)
    assert made.quant is not None
    assert made.quant.kind == "nf4"


@pytest.mark.parametrize(
    ("written", "name", "implementation", "paged"),
    [
        ("adamw_torch", "adamw", "foreach", False),
        ("adamw_torch_fused", "adamw", "fused", False),
        ("paged_adamw_8bit", "adamw-8bit", "foreach", True),
        ("bitsandbytes.optim.PagedAdamW8bit", "adamw-8bit", "foreach", True),
        ("adafactor", "adafactor", "foreach", False),
        ("lion_8bit", "lion-8bit", "foreach", False),
        ("galore_adamw", "galore", "foreach", False),
        ("torch.optim.SGD", "sgd", "foreach", False),
    ],
)
def test_an_optimizer_has_one_name_however_it_is_written(
    written: str, name: str, implementation: str, paged: bool
) -> None:
    made = job(optimizer__name=written).optimizer

    assert made is not None
    assert (made.name, made.implementation, made.paged) == (name, implementation, paged)


def test_what_nobody_said_is_an_assumption() -> None:
    found = reading(model__name=LLAMA)

    assert found.job is not None
    assert found.job.attention == "sdpa"
    assert any("sdpa" in one for one in found.assumptions)
    assert any("2,048 tokens" in one for one in found.assumptions)


def test_preferences_without_a_reference_need_none() -> None:
    assert job(job__task="dpo").reference == "separate"
    assert job(job__task="dpo", lora__on=True).reference == "adapter-off"
    assert job(job__task="dpo", train__variant="orpo").reference is None


def test_an_evaluation_keeps_its_outputs_only_for_metrics_of_its_own() -> None:
    kept = job(job__task="sft", eval__strategy="steps", eval__compute_metrics=True).evaluation
    small = job(
        job__task="sft",
        eval__strategy="steps",
        eval__compute_metrics=True,
        eval__preprocess_logits=True,
    ).evaluation

    assert kept is not None
    assert kept.keeps_outputs
    assert small is not None
    assert not small.keeps_outputs
    assert job(job__task="sft").evaluation is None


def test_nanogpt_builds_its_network_from_stated_widths() -> None:
    found = reading(
        job__framework="nanogpt",
        job__task="pretrain",
        model__layers=12,
        model__hidden=768,
        model__heads=12,
        train__seq_len=1024,
    )

    assert found.job is not None
    assert found.job.model.config["model_type"] == "gpt2"
    assert found.job.framework == "torch"


def test_full_scores_are_written_out_where_a_family_has_no_other_attention() -> None:
    found = reading(model__name="google/gemma-2-2b")

    assert found.job is not None
    assert found.job.attention == "eager"


def test_freezing_some_layers_is_not_described() -> None:
    found = reading(model__name=LLAMA, train__frozen_layers=True, job__task="sft")

    assert found.job is None


@pytest.mark.parametrize(
    "changed",
    [
        *({"hidden_size": -64}, {"hidden_size": 0}, {"hidden_size": "wide"}, {"hidden_size": 64.5}),
        *({"hidden_size": float("nan")}, {"hidden_size": [64, 64]}, {"hidden_size": True}),
        *({"num_hidden_layers": 10**9}, {"num_attention_heads": 0}, {"vocab_size": -1}),
        *({"num_key_value_heads": 0}, {"text_config": {"hidden_size": float("inf")}}),
    ],
)
def test_a_config_of_a_network_that_cannot_be_is_refused_by_its_key(
    changed: dict[str, object],
) -> None:
    network = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2}
    found = reading(model__config=json.dumps({**network, **changed}))

    key = next(iter(changed))
    assert found.job is None
    assert [key in one and "whole number" in one for one in found.missing] == [True]


def test_numbers_that_a_network_lists_for_each_layer_may_be() -> None:
    network = {
        "model_type": "gemma3n_text",
        "intermediate_size": [128, 256],
        "num_key_value_heads": None,
    }
    found = reading(model__config=json.dumps({**network, "hidden_size": 64}))

    assert found.job is not None, found.missing


def test_rows_longer_than_the_model_was_made_for_are_told() -> None:
    assert any(
        "4,096" in one for one in reading(model__name=LLAMA, train__seq_len=9000).assumptions
    )
    assert not any("made for" in one for one in reading(model__name=LLAMA).assumptions)


def test_adapters_without_names_are_where_peft_puts_them() -> None:
    phi = reading(model__name="microsoft/phi-2", lora__on=True)

    assert phi.job is not None
    assert phi.job.lora is not None
    assert phi.job.lora.targets == ("q_proj", "v_proj", "fc1", "fc2")
    assert "adapters on q_proj, v_proj, fc1, fc2 (PEFT's own choice for phi)" in phi.assumptions


def test_adapters_of_a_family_without_a_choice_of_peft_are_on_all_linear_layers() -> None:
    found = reading(model__name="microsoft/Phi-3-mini-4k-instruct", lora__on=True)

    assert found.job is not None
    assert found.job.lora is not None
    assert found.job.lora.targets == ("all-linear",)
    assert any("would refuse" in one for one in found.assumptions)


def test_adapters_without_names_leave_experts_alone() -> None:
    found = reading(model__name="Qwen/Qwen3-30B-A3B", lora__on=True)

    assert found.job is not None
    assert found.job.lora is not None
    assert found.job.lora.targets == ("q_proj", "k_proj", "v_proj", "o_proj")


def test_preference_training_without_a_framework_is_trls() -> None:
    assert job(job__task="kto").framework == "trl"
    assert job(job__task="sft").framework == "transformers"


def test_a_head_for_tokens_has_labels() -> None:
    found = reading(model__name="google-bert/bert-base-uncased", job__task="token-classification")

    assert found.job is not None
    assert (found.job.task, found.job.labels) == ("token-classification", 2)
    assert found.job.trains


def test_a_count_of_cards_and_a_near_name_are_supposed_only_where_that_is_asked_for() -> None:
    facts = [
        Fact(key="model.name", value="someone/Mistral-7B-of-ours", origin=Origin.STATED),
        Fact(key="dist.kind", value="zero3", origin=Origin.STATED),
    ]
    book = completed(FactBook().add(facts, closes=("train-config",)))
    supposed = job_of_completed(book, supposes=True)

    assert job_of_completed(book).job is None
    assert supposed.job is not None
    assert (supposed.job.sharding.kind, supposed.job.sharding.ranks) == ("zero3", 1)
    assert any("a single card" in one for one in supposed.assumptions)
    assert any("the shape of mistralai/Mistral-7B-v0.1" in one for one in supposed.assumptions)


def test_orpo_takes_all_logits_where_trl_fuses_the_loss_of_others() -> None:
    said = {"job__framework": "trl", "job__task": "dpo"}

    assert job(**said).loss == "fused"
    assert job(**said, train__variant="orpo").loss == "full-logits"


def test_a_task_of_trl_brings_its_defaults_where_no_framework_is_named() -> None:
    book = FactBook().add([Fact(key="job.task", value="grpo", origin=Origin.STATED)])
    named = book.add([Fact(key="job.framework", value="axolotl", origin=Origin.STATED)])

    assert with_framework(book).value("job.framework") == "trl"
    assert with_framework(named).value("job.framework") == "axolotl"


def test_an_engine_on_the_trainers_card_has_its_share_and_a_server_none() -> None:
    said = {"job__framework": "trl", "job__task": "grpo", "rl__use_vllm": True}

    assert job(**said, gen__engine_share=0.4).engine_share == 0.4
    assert job(**said).engine_share == 0.3
    assert job(**said, env__trl="0.17.0").engine_share is None
    assert job(job__framework="trl", job__task="grpo").engine_share is None


@pytest.mark.parametrize(
    ("model", "version", "says"),
    [
        ("tiiuae/falcon-7b", "5.24.0", "Falcon's linear layers in 16 bits"),
        ("tiiuae/falcon-7b", "4.57.0", ""),
        ("mistralai/Mixtral-8x7B-v0.1", "5.24.0", "experts in 16 bits"),
        (LLAMA, "5.24.0", ""),
    ],
)
def test_weights_that_stay_wide_beside_a_quantised_base_are_told(
    model: str, version: str, says: str
) -> None:
    found = reading(model__name=model, quant__kind="bnb4", lora__on=True, env__transformers=version)

    told = [one for one in found.assumptions if "in 16 bits (bitsandbytes" in one]
    assert [one.startswith(says) for one in told] == ([True] if says else [])
