"""transformers TrainingArguments as YAML, JSON, flags or keyword arguments.

model_name_or_path: gpt2
output_dir: out
per_device_train_batch_size: 4
gradient_checkpointing: true
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import parallel
from oomdoctor.configs.claims import Claim, Table, given, nothing
from oomdoctor.configs.mapping import Dialect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Setting, Settings

MARKS = (
    "per_device_train_batch_size",
    "per_device_eval_batch_size",
    "gradient_accumulation_steps",
    "num_train_epochs",
    "learning_rate",
    "lr_scheduler_type",
    "eval_strategy",
    "evaluation_strategy",
    "save_strategy",
    "logging_steps",
    "warmup_ratio",
    "gradient_checkpointing",
    "activation_checkpointing",
    "eval_accumulation_steps",
    "report_to",
    "dataloader_num_workers",
    "predict_with_generate",
    "remove_unused_columns",
    "group_by_length",
    "save_total_limit",
)
FSDP_KEYS: Table = {
    "fsdp_config.offload_params": parallel.offload("dist.param_offload"),
    "fsdp_config.cpu_offload": parallel.offload("dist.param_offload"),
    "fsdp_config.fsdp_auto_wrap_policy": parallel.wrap_policy,
    "fsdp_config.fsdp_backward_prefetch": parallel.prefetch,
    "fsdp_config.fsdp_backward_prefetch_policy": parallel.prefetch,
    "fsdp_config.backward_prefetch": parallel.prefetch,
    "fsdp_config.fsdp_transformer_layer_cls_to_wrap": given("dist.auto_wrap"),
}
KEYS: Table = {"label_names": nothing, **FSDP_KEYS}


def matches(settings: Settings) -> bool:
    """Say whether the keys are those of TrainingArguments."""
    at_least = 1 if "per_device_train_batch_size" in settings.top else 2
    return settings.names(*MARKS) >= at_least


def closes(settings: Settings) -> tuple[str, ...]:
    """Close the job's config where model, output and the training arguments stand together."""
    needed = ("output_dir", "per_device_train_batch_size")
    whole = settings.names(*needed) == 2 and settings.names(*MARKS) >= 6
    named = settings.names("model_name_or_path", "model_name", "model") >= 1
    return ("train-config",) if whole and named else ()


def fsdp(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Read FSDP's version, which decides between the two implementations."""
    on = settings.first("fsdp", "fsdp_config.fsdp_sharding_strategy")
    version = settings.first("fsdp_version", "fsdp_config.fsdp_version", "fsdp_config.version")
    if version is not None and version.value in (1, 2, "1", "2"):
        yield Claim("dist.kind", f"fsdp{version.value}"), version
    elif on is None:
        row = next((row for row in settings if row.key.startswith("fsdp_config.")), None)
        if row is not None:
            yield Claim("dist.kind", "fsdp1"), row


DIALECT = Dialect("hf_trainer", "transformers", KEYS, matches, closes, fsdp)
