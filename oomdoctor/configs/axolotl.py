"""Axolotl YAML.

base_model: NousResearch/Llama-3.2-1B
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
adapter: qlora
load_in_4bit: true
sequence_len: 2048
micro_batch_size: 2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import (
    hf_trainer,
    meanings,
    scalars,
    trl,
    vocabulary_job,
    vocabulary_training,
)
from oomdoctor.configs.claims import Claim, Table, both, given, nothing, when_true, word
from oomdoctor.configs.mapping import Dialect
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain, Setting, Settings

MARKS = (
    "sequence_len",
    "micro_batch_size",
    "sample_packing",
    "val_set_size",
    "adapter",
    "dataset_prepared_path",
    "pad_to_sequence_len",
    "lora_target_linear",
    "base_model_config",
    "tokenizer_type",
    "pretraining_dataset",
    "num_epochs",
    "evals_per_epoch",
)
CLOUD = ("gpu", "gpu_count", "node_count", "secrets", "provider")


def _bf16(value: Plain) -> Iterator[Claim]:
    """Read bf16, which also decides in which dtype the base is loaded."""
    if scalars.as_bool(value):
        yield Claim("train.amp", "bf16")
        yield Claim("train.base_dtype", "bf16", 0, "Axolotl loads the base in bf16", Origin.DERIVED)
    elif value == "auto":
        source = "bf16: auto means bf16 on Ampere and later"
        yield Claim("train.amp", "bf16", 0, source, Origin.ASSUMED)
        yield Claim("train.base_dtype", "bf16", 0, source, Origin.ASSUMED)


def _adapter(value: Plain) -> Iterator[Claim]:
    if isinstance(value, str) and value:
        yield Claim("lora.on", value=True)


def _plugins(value: Plain) -> Iterator[Claim]:
    if any("cut_cross_entropy" in name.lower() for name in scalars.as_strings(value)):
        yield Claim("loss.impl", "fused")


def _pure(name: str) -> tuple[Claim, ...]:
    return (
        Claim("train.base_dtype", name),
        Claim("train.param_dtype", name),
        Claim("train.amp", "none"),
    )


KEYS: Table = {
    "adapter": both(_adapter, vocabulary_job.adapter_kind),
    "bf16": _bf16,
    "bfloat16": when_true(*_pure("bf16")),
    "float16": when_true(*_pure("fp16")),
    "batch_size": nothing,
    "plugins": _plugins,
    "rl": both(word("job.task", meanings.STAGES), vocabulary_job.variant),
    "reward_model": when_true(Claim("job.task", "reward")),
    "lora_target_linear": when_true(Claim("lora.targets", "all-linear")),
    "lora_r": nothing,
    "tokens": given("train.adds_tokens"),
    "gptq": when_true(Claim("quant.kind", "gptq")),
    "unfrozen_parameters": given("train.full_finetune", value=False),
    "flash_attention": meanings.attention_if("flash2"),
    **hf_trainer.FSDP_KEYS,
    **vocabulary_training.AXOLOTL,
}


def matches(settings: Settings) -> bool:
    """Say whether a base model stands with Axolotl's own names, or a cloud file's keys do."""
    if "base_model" in settings.top:
        return settings.names("datasets", *MARKS) >= 1
    if settings.names("provider", "secrets") and settings.names(*CLOUD) >= 3:
        return True
    return settings.names("sequence_len", "micro_batch_size", "sample_packing") >= 2


def closes(settings: Settings) -> tuple[str, ...]:
    """Close the job's config where model, data and step are all given."""
    data = settings.names("datasets", "pretraining_dataset", "test_datasets") >= 1
    needed = settings.names("base_model", "micro_batch_size", "learning_rate") == 3
    return ("train-config",) if data and needed else ()


def derived(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Read what two keys decide together: adapter and rank, task, evaluation, FSDP's version."""
    adapter, rank = settings.get("adapter"), settings.get("lora_r")
    number = scalars.as_count(rank.value) if rank else None
    if rank is not None and number and (adapter is not None or not closes(settings)):
        yield Claim("lora.rank", number), rank
    base = settings.get("base_model")
    if adapter is None and base is not None and closes(settings):
        source = "no adapter in a complete Axolotl config"
        yield Claim("lora.on", value=False, source=source, origin=Origin.DERIVED), base
    yield from _task(settings)
    held_out = settings.get("val_set_size")
    if held_out and held_out.value in (0, 0.0) and "test_datasets" not in settings.top:
        source = "val_set_size 0 and no test_datasets"
        yield Claim("eval.strategy", "no", 0, source, Origin.DERIVED), held_out
    yield from trl.engine(settings)
    yield from hf_trainer.fsdp(settings)


def _task(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    if settings.get("rl") is None and settings.value("reward_model") is not True:
        rows = [row for row in settings if row.path[0] in ("datasets", "pretraining_dataset")]
        if rows:
            task = "pretrain" if rows[0].path[0] == "pretraining_dataset" else "sft"
            yield Claim("job.task", task), rows[0]


DIALECT = Dialect("axolotl", "axolotl", KEYS, matches, closes, derived)
