"""LLaMA-Factory YAML, JSON or flags, the newer `model_class` form included.

model_name_or_path: Qwen/Qwen3-4B
stage: sft
finetuning_type: lora
lora_rank: 8
cutoff_len: 2048
per_device_train_batch_size: 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import hf_trainer, meanings, parallel, scalars, vocabulary_job
from oomdoctor.configs.claims import Claim, Table, both, count, given, nothing, ratio, text
from oomdoctor.configs.mapping import Dialect
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain, Setting, Settings

MARKS = (
    "finetuning_type",
    "template",
    "cutoff_len",
    "lora_target",
    "dataset_dir",
    "preprocessing_num_workers",
    "quantization_bit",
    "infer_backend",
    "export_dir",
    "overwrite_cache",
    "plot_loss",
    "neat_packing",
    "double_quantization",
    "visual_inputs",
)


def _finetuning(value: Plain) -> Iterator[Claim]:
    match scalars.as_text(value):
        case "lora" | "oft":
            yield Claim("lora.on", value=True)
        case "full":
            yield Claim("train.full_finetune", value=True)
            yield Claim("lora.on", value=False)
        case "freeze":
            yield Claim("train.full_finetune", value=False)
            yield Claim("lora.on", value=False)


KEYS: Table = {
    "finetuning_type": both(_finetuning, vocabulary_job.adapter_kind),
    "quantization_method": nothing,
    "peft_config.r": count("lora.rank"),
    "peft_config.lora_alpha": ratio("lora.alpha"),
    "peft_config.target_modules": text("lora.targets"),
    "dist_config.name": parallel.strategy,
    "dist_config.config_file": parallel.zero_file,
    "quant_config.quantization_bit": meanings.bits,
    "export_dir": given("job.task", value="merge"),
    "max_samples": nothing,
    "add_tokens": given("train.adds_tokens"),
    "add_special_tokens": given("train.adds_tokens"),
    "new_special_tokens": given("train.adds_tokens"),
    "image_max_pixels": count("vision.max_pixels"),
    **hf_trainer.FSDP_KEYS,
}


def matches(settings: Settings) -> bool:
    """Say whether LLaMA-Factory's own names occur."""
    newer = settings.names("model_class", "dist_config", "kernel_config", "peft_config")
    if newer and settings.names("model", "export_dir", "train_dataset") >= 1:
        return True
    if settings.names("finetuning_type", "infer_backend", "export_dir") >= 1:
        return settings.names("model_name_or_path", "model", "stage", "template") >= 1
    train = settings.names("stage", "do_train", "model_name_or_path")
    if settings.value("stage") in tuple(meanings.STAGES) and settings.names("do_train", *MARKS):
        return True
    return train >= 1 and settings.names(*MARKS) >= 2


def closes(settings: Settings) -> tuple[str, ...]:
    """Close the job's config where model, data and step are all given."""
    kind = settings.names("finetuning_type", "stage") >= 1  # lora and sft unless said otherwise
    older = kind and "model_name_or_path" in settings.top and "export_dir" not in settings.top
    trains = settings.names("output_dir", "per_device_train_batch_size", "cutoff_len") >= 2
    newer = settings.names("model", "train_dataset", "output_dir", "micro_batch_size") == 4
    return ("train-config",) if (older and trains) or newer else ()


def derived(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Read what two keys decide together: quantisation, adapter of the newer form, dtype."""
    bits, method = settings.get("quantization_bit"), settings.value("quantization_method")
    if bits and method not in (None, "bnb", "bitsandbytes"):
        yield from ((claim, bits) for claim in meanings.quantization(method))
    adapter = settings.get("peft_config.name")
    if adapter is not None:
        yield from ((claim, adapter) for claim in _finetuning(adapter.value))
        if adapter.value == "qlora":
            yield Claim("lora.on", value=True), adapter
    elif "model_class" in settings.top and closes(settings):
        row = settings.get("model") or settings.rows[0]
        source = "no peft_config in a complete config"
        yield Claim("lora.on", value=False, source=source, origin=Origin.DERIVED), row
    if "stage" not in settings.top and "finetuning_type" in settings.top and closes(settings):
        row = settings.get("finetuning_type") or settings.rows[0]
        yield Claim("job.task", "sft", 0, "stage is sft unless said", Origin.ASSUMED), row
    for key, name in (("bf16", "bf16"), ("fp16", "fp16")):
        row_or_none = settings.get(key)
        if row_or_none and row_or_none.value is True:
            source = "LLaMA-Factory loads the base in the compute dtype"
            yield Claim("train.base_dtype", name, 0, source, Origin.DERIVED), row_or_none
    if settings.names("infer_backend", "sample_backend") and not settings.names("do_train"):
        row_or_none = settings.first("infer_backend", "sample_backend")
        if row_or_none and not settings.names("train_dataset", "stage", "dataset"):
            yield Claim("job.task", "generate"), row_or_none
    yield from hf_trainer.fsdp(settings)


DIALECT = Dialect("llamafactory", "llamafactory", KEYS, matches, closes, derived)
