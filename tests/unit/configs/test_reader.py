"""Reading configs: what each dialect states, where it stands, and what makes a text no config."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oomdoctor.configs.reader import read_config
from oomdoctor.facts.registry import specs
from oomdoctor.model.enums import Kind, Origin

if TYPE_CHECKING:
    from oomdoctor.configs.dialect import ConfigReading

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "configs"
SHARED = Path(__file__).resolve().parents[4] / "shared" / "configs"
FILES = sorted(path for path in FIXTURES.rglob("*") if path.is_file())


def read(name: str) -> tuple[ConfigReading, ...]:
    path = FIXTURES / name
    return read_config(path.read_text(), name=str(path), path=str(path))


def subset(name: str, *keys: str) -> dict[str, object]:
    facts = {fact.key: fact.value for reading in read(name) for fact in reading.facts}
    return {key: facts.get(key) for key in keys}


@pytest.mark.parametrize(
    ("name", "dialect", "closes"),
    [
        ("hf_trainer/train.yaml", "hf_trainer", ("train-config",)),
        ("hf_trainer/args.json", "hf_trainer", ()),
        ("trl/sft.yaml", "trl", ("train-config",)),
        ("axolotl/qlora.yml", "axolotl", ("train-config",)),
        ("llamafactory/full.yaml", "llamafactory", ("train-config",)),
        ("deepspeed/zero3.json", "deepspeed", ("zero-config",)),
        ("accelerate/fsdp2.yaml", "accelerate", ("fsdp-config",)),
        ("torchtune/qlora.yaml", "torchtune", ("train-config",)),
        ("torchtitan/train.toml", "torchtitan", ("train-config",)),
        ("lightning/config.yaml", "lightning", ("train-config",)),
        ("hub_config/config.json", "hub_config", ()),
        ("adapter_config/adapter_config.json", "adapter_config", ()),
        ("python/train.py", "python", ("train-config", "train-script")),
        ("python/loop.py", "python", ()),
    ],
)
def test_the_dialect_follows_from_the_content(
    name: str, dialect: str, closes: tuple[str, ...]
) -> None:
    (reading,) = read(name)

    assert (reading.dialect, reading.closes) == (dialect, closes)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_quote_stands_where_it_says(path: Path) -> None:
    lines = path.read_text().split("\n")
    for reading in read_config(path.read_text(), name="x", path=str(path)):
        for fact in reading.facts:
            assert fact.quotes
            for quote in fact.quotes:
                end = quote.end_column - 1 if quote.end_column else None
                assert lines[quote.line - 1][quote.column - 1 : end] == quote.text


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_fact_is_registered_with_a_value_of_its_kind(path: Path) -> None:
    number = {Kind.BYTES: int, Kind.COUNT: int, Kind.BOOL: bool, Kind.TEXT: str, Kind.ENUM: str}
    for reading in read_config(path.read_text(), name="x", path=str(path)):
        for fact in reading.facts:
            spec = specs()[fact.key]
            assert isinstance(fact.value, number.get(spec.kind, (int, float, str)))
            assert not spec.choices or fact.value in spec.choices


def test_hf_arguments_are_mapped_and_null_says_nothing() -> None:
    keys = [
        "train.micro_batch",
        "train.grad_accum",
        "train.amp",
        "train.grad_checkpointing",
        "train.checkpoint_reentrant",
        "eval.strategy",
        "eval.batch",
        "eval.accumulation_steps",
        "data.workers",
        "model.name",
        "job.framework",
    ]

    assert list(subset("hf_trainer/train.yaml", *keys).values()) == [
        *(16, 2, "fp16", True, False, "steps", 32, None, 4, "gpt2", "transformers")
    ]


def test_hf_json_names_optimizer_and_fsdp() -> None:
    assert subset(
        "hf_trainer/args.json", "optimizer.state_bits", "dist.kind", "dist.param_offload"
    ) == {"optimizer.state_bits": 8, "dist.kind": "fsdp1", "dist.param_offload": "cpu"}


def test_trl_tells_the_trainer_from_its_own_keys() -> None:
    sft = subset("trl/sft.yaml", "job.task", "lora.on", "lora.rank", "train.seq_len")
    grpo = subset("trl/grpo.yaml", "job.task", "gen.colocated_engine", "train.seq_len", "lora.on")

    assert sft == {"job.task": "sft", "lora.on": True, "lora.rank": 32, "train.seq_len": 2048}
    assert grpo == {
        "job.task": "grpo",
        "gen.colocated_engine": True,
        "train.seq_len": 1536,
        "lora.on": False,
    }


def test_axolotl_qlora_is_a_quantised_adapter_without_evaluation() -> None:
    keys = "quant.kind lora.on lora.rank lora.targets eval.strategy train.base_dtype dist.kind"

    assert list(subset("axolotl/qlora.yml", *keys.split()).values()) == [
        *("bnb4", True, 16, "all-linear", "no", "bf16", "zero2")
    ]


def test_bf16_auto_of_axolotl_is_only_assumed() -> None:
    text = "base_model: gpt2\nsequence_len: 512\nmicro_batch_size: 1\nbf16: auto\n"
    (reading,) = read_config(text, name="a.yaml")

    (amp,) = [fact for fact in reading.facts if fact.key == "train.amp"]
    assert (amp.value, amp.origin) == ("bf16", Origin.ASSUMED)


def test_llamafactory_without_a_stage_is_a_whole_supervised_job() -> None:
    text = "model_name_or_path: a/b\nfinetuning_type: full\ncutoff_len: 64\noutput_dir: o\n"
    (reading,) = read_config(text, name="a.yaml", path="a.yaml")
    (task,) = [fact for fact in reading.facts if fact.key == "job.task"]

    assert (reading.dialect, reading.closes) == ("llamafactory", ("train-config",))
    assert (task.value, task.origin.value) == ("sft", "assumed")


def test_llamafactory_full_training_has_no_adapter() -> None:
    keys = "train.full_finetune lora.on loss.impl attention.impl dist.kind optimizer.offload"

    assert list(subset("llamafactory/full.yaml", *keys.split()).values()) == [
        *(True, False, "liger", "flash2", "zero3", "cpu")
    ]


def test_deepspeed_auto_says_nothing() -> None:
    keys = ("train.micro_batch", "train.grad_accum", "dist.kind", "optimizer.offload")

    assert list(subset("deepspeed/zero3.json", *keys).values()) == [None, 4, "zero3", "cpu"]


def test_accelerate_names_the_version_of_fsdp() -> None:
    keys = ("dist.kind", "dist.world_size", "dist.param_offload", "job.launcher")

    assert list(subset("accelerate/fsdp2.yaml", *keys).values()) == [
        *("fsdp2", 4, "cpu", "accelerate")
    ]


def test_torchtune_follows_references_and_builders() -> None:
    keys = [
        "quant.kind",
        "lora.on",
        "eval.batch",
        "optimizer.paged",
        "loss.impl",
        "model.name",
        "train.amp",
    ]

    assert list(subset("torchtune/qlora.yaml", *keys).values()) == [
        *("bnb4", True, 4, True, "chunked", "Meta-Llama-3.1-8B-Instruct", "none")
    ]


def test_torchtitan_sections_are_read_with_their_places() -> None:
    (reading,) = read("torchtitan/train.toml")
    (batch,) = [fact for fact in reading.facts if fact.key == "train.micro_batch"]

    assert (batch.value, batch.quotes[0].line, batch.quotes[0].column) == (2, 9, 20)
    assert subset("torchtitan/train.toml", "model.name", "dist.kind") == {
        "model.name": "llama3-8B",
        "dist.kind": "fsdp2",
    }


def test_lightning_multiplies_devices_and_nodes() -> None:
    keys = ("dist.world_size", "train.micro_batch", "train.amp", "train.grad_accum")

    assert list(subset("lightning/config.yaml", *keys).values()) == [8, 16, "bf16", 4]


def test_a_network_without_hidden_size_is_a_hub_config_too() -> None:
    text = """{"model_type": "resnet", "architectures": ["ResNetForImageClassification"],
    "hidden_sizes": [256, 512], "depths": [3, 4]}"""
    (found,) = read_config(text, name="config.json", path="config.json")
    assert found.dialect == "hub_config"
    assert "model.config" in {fact.key for fact in found.facts}


def test_a_hub_config_gives_the_text_model_of_a_vision_model() -> None:
    keys = "model.hidden model.layers model.kv_heads model.vocab model.tied model.kind model.dtype"

    assert list(subset("hub_config/config.json", *keys.split()).values()) == [
        *(3584, 28, 4, 152064, False, "vlm", "bf16")
    ]


def test_an_adapter_config_names_what_is_trained_in_full() -> None:
    keys = ("lora.rank", "lora.modules_to_save", "model.name", "job.task")

    assert list(subset("adapter_config/adapter_config.json", *keys).values()) == [
        *(16, "lm_head", "gpt2", "sft")
    ]


def test_the_value_is_quoted_with_line_and_column() -> None:
    (reading,) = read("hf_trainer/train.yaml")
    (fact,) = [fact for fact in reading.facts if fact.key == "train.checkpoint_reentrant"]
    (quote,) = fact.quotes

    assert (quote.line, quote.column, quote.text) == (11, 20, "false")


def test_job_text_quotes_each_line_that_is_not_blank() -> None:
    (reading,) = read_config("batch_size: 4\n\nlr: 1\n", name="x")
    (text,) = [fact for fact in reading.facts if fact.key == "job.text"]

    assert text.value == "batch_size: 4\nlr: 1"
    assert [quote.line for quote in text.quotes] == [1, 3]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the published configs are not in the repository")
def test_published_configs_are_recognised() -> None:
    allowed = {
        "axolotl": {"axolotl"},
        "llamafactory": {"llamafactory", "deepspeed", "accelerate"},
        "torchtune": {"torchtune"},
        "alignment": {"trl", "accelerate"},
    }
    strange = []
    paths = sorted(path for path in SHARED.rglob("*") if path.is_file())
    for path in paths:
        readings = read_config(path.read_text(), name=path.name, path=str(path))
        if not {reading.dialect for reading in readings} <= allowed[path.parent.name]:
            strange.append((path.name, [reading.dialect for reading in readings]))

    assert strange == []
    assert len(paths) > 300
