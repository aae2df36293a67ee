"""Models by name, and what LoRA trains on them."""

from __future__ import annotations

import pytest

from oomdoctor.facts import models
from oomdoctor.facts.derive import derive
from oomdoctor.model.enums import Origin
from tests.unit.facts.stated import book


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B"),
        ("/data/models/Qwen2.5-7B-Instruct-AWQ", "Qwen/Qwen2.5-7B"),
        ("qwen/qwen2.5-7b-instruct-gptq-int4", "Qwen/Qwen2.5-7B"),
        ("unsloth/llama-3-8b-bnb-4bit", "meta-llama/Meta-Llama-3-8B"),
        ("NousResearch/Llama-2-7b-chat-hf", "meta-llama/Llama-2-7b-hf"),
        ("TheBloke/Llama-2-13B-chat-GPTQ", "meta-llama/Llama-2-13b-hf"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistralai/Mistral-7B-v0.3"),
        ("black-forest-labs/FLUX.1-schnell", "FLUX.1 transformer"),
        ("some/Mistral-Nemo-Instruct-2407", "mistralai/Mistral-Nemo-Base-2407"),
        ("google/gemma-3-4b-it", "google/gemma-3-4b-pt"),
        ("models--Qwen--Qwen2.5-3B/snapshots/0a1b", "Qwen/Qwen2.5-3B"),
        ("C:\\models\\Llama-2-7b-hf\\", "meta-llama/Llama-2-7b-hf"),
        ("gpt2", "openai-community/gpt2"),
    ],
)
def test_a_name_finds_its_model(name: str, expected: str) -> None:
    found = models.lookup(name)

    assert found is not None
    assert found.model.name == expected


@pytest.mark.parametrize(
    "name",
    ["Qwen/Qwen1.5-32B", "codellama/CodeLlama-71b-hf", "my/bot-7b", "roberta", "t5", "", "/"],
)
def test_no_family_is_taken_for_another(name: str) -> None:
    assert models.lookup(name) is None


def test_every_model_is_found_by_its_own_name() -> None:
    lost = [m.name for m in models.models() if (f := models.lookup(m.name)) is None or f.model != m]

    assert lost == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("my/support-bot-7b", 7_000_000_000),
        ("opt-350m", 350_000_000),
        ("bot_1.5B_v2", 1_500_000_000),
        ("Mixtral-8x7B", None),
        ("scout-17B-16E", None),
        ("target-7b-draft-1b", None),
        ("bot", None),
        ("b", None),
        (".b", None),
    ],
)
def test_a_size_in_a_name_is_read(name: str, expected: int | None) -> None:
    assert models.stated_size(name) == expected


def test_a_size_in_a_name_is_an_assumption_with_slack() -> None:
    made = derive(book({"model.name": "my/support-bot-7b"})).facts["model.params"]

    assert (made.value, made.origin, made.slack) == (7 * 10**9, Origin.ASSUMED, 0.56 * 10**9)


def test_a_name_gives_the_whole_shape() -> None:
    made = derive(book({"model.name": "Qwen/Qwen2.5-7B-Instruct"}))

    keys = ("params", "layers", "hidden", "heads", "kv_heads", "head_dim", "vocab", "tied")
    assert [made.value(f"model.{key}") for key in keys] == [
        7_615_616_512,
        28,
        3584,
        28,
        4,
        128,
        152_064,
        False,
    ]


def test_a_variant_says_whose_shape_was_taken() -> None:
    made = derive(book({"model.name": "unsloth/Qwen2.5-7B-bnb-4bit"})).facts["model.params"]

    assert made.source == "table of models: same shape as Qwen/Qwen2.5-7B"


def test_a_config_shape_gives_the_parameters() -> None:
    llama = {
        "model.layers": 32,
        "model.hidden": 4096,
        "model.heads": 32,
        "model.intermediate": 11008,
        "model.vocab": 32000,
    }

    made = derive(book(llama)).facts["model.params"]

    assert abs(made.value - 6_738_415_616) < 0.001 * 6_738_415_616


ALL_LINEAR = "all-linear"
QV = "['q_proj', 'v_proj']"


@pytest.mark.parametrize(
    ("name", "targets", "expected"),
    [
        ("meta-llama/Llama-2-7b-hf", QV, 4_194_304),
        ("meta-llama/Llama-2-7b-hf", ALL_LINEAR, 19_988_480),
        ("meta-llama/Meta-Llama-3-8B", "q_proj,v_proj", 3_407_872),
        ("meta-llama/Meta-Llama-3-8B", "all", 20_971_520),
        ("Qwen/Qwen2.5-7B", QV, 2_523_136),
        ("Qwen/Qwen2.5-7B", ALL_LINEAR, 20_185_088),
    ],
)
def test_lora_trains_rank_times_inputs_and_outputs(name: str, targets: str, expected: int) -> None:
    job = {"model.name": name, "lora.on": True, "lora.rank": 8, "lora.targets": targets}

    assert derive(book(job)).value("train.trainable_params") == expected


def test_modules_to_save_count_in_full() -> None:
    job = {
        "model.name": "meta-llama/Llama-2-7b-hf",
        "lora.on": True,
        "lora.rank": 8,
        "lora.targets": QV,
        "lora.modules_to_save": "['embed_tokens', 'lm_head']",
    }

    expected = 4_194_304 + 2 * 32000 * 4096
    assert derive(book(job)).value("train.trainable_params") == expected


def test_unknown_targets_give_no_count() -> None:
    job = {
        "model.name": "meta-llama/Llama-2-7b-hf",
        "lora.on": True,
        "lora.rank": 8,
        "lora.targets": "Wqkv",
    }

    assert derive(book(job)).get("train.trainable_params") is None


def test_full_training_trains_all_parameters() -> None:
    job = {"model.name": "Qwen/Qwen2.5-7B", "lora.on": False, "job.task": "sft"}

    assert derive(book(job)).value("train.trainable_params") == 7_615_616_512


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openai-community/gpt2", "absolute"),
        ("meta-llama/Llama-3.1-8B", "rope"),
        ("bigscience/bloom-560m", "alibi"),
        ("google-t5/t5-base", None),
    ],
)
def test_positions_follow_the_architecture(name: str, expected: str | None) -> None:
    found = models.lookup(name)

    assert found is not None
    assert models.positions_of(found.model.architecture) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("teknium/OpenHermes-2.5-Mistral-7B", "mistralai/Mistral-7B-v0.1"),
        ("someone/dolphin-llama3-8b-tuned", "meta-llama/Meta-Llama-3-8B"),
        ("saves/qwen3-4b/full/sft", "Qwen/Qwen3-4B"),
        ("nvidia/Qwen3-30B-A3B-Pruned", "Qwen/Qwen3-30B-A3B"),
        ("my-company/support-bot-7b", None),
        ("someone/phi-4-multimodal", None),
        ("someone/Qwen2.5-Small", None),
    ],
)
def test_a_name_within_a_name_is_a_guess_by_family_and_size(
    name: str, expected: str | None
) -> None:
    found = models.nearest(name)

    assert models.lookup(name) is None
    assert expected == (None if found is None else found.model.name)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("two 24 GB cards, Qwen2.5-7B-Instruct-AWQ behind a proxy", "Qwen2.5-7B-Instruct-AWQ"),
        ("serve.py --model /data/Qwen2.5-7B --port 80", "data/Qwen2.5-7B"),
        ("Qwen2.5-7B with Qwen2.5-0.5B as its draft", None),
        ("my-own-model on A100-80GB", None),
    ],
)
def test_the_words_of_a_job_may_name_one_model(words: str, name: str | None) -> None:
    assert name == derive(book({"job.text": words})).value("model.name")


@pytest.mark.parametrize(
    ("words", "size"),
    [("TPU v3-8, one host", 16 << 30), ("v5e-4 TPU", 16 << 30), ("model v3-8 on a card", None)],
)
def test_the_name_of_a_tpu_slice_tells_the_memory_of_a_device(words: str, size: int | None) -> None:
    assert size == derive(book({"job.text": words})).value("gpu.total")
