"""torchtitan: TOML sections (until 0.2) and dotted flags with the same names.

[training]
local_batch_size = 8
seq_len = 8192
[activation_checkpoint]
mode = "selective"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import (
    meanings,
    parallel,
    scalars,
    vocabulary_job,
    vocabulary_lint,
    vocabulary_training,
)
from oomdoctor.configs.claims import Claim, Table, both, count, dtype, flag, ratio
from oomdoctor.configs.mapping import Dialect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain, Setting, Settings


def _mode(value: Plain) -> Iterator[Claim]:
    said = (scalars.as_text(value) or "none").lower()
    yield Claim("train.grad_checkpointing", said in ("full", "selective"))


KEYS: Table = {
    "training.local_batch_size": count("train.micro_batch"),
    "training.batch_size": count("train.micro_batch"),
    "training.global_batch_size": count("train.global_batch"),
    "training.seq_len": count("train.seq_len"),
    "training.steps": count("train.max_steps"),
    "training.dtype": dtype("train.base_dtype"),
    "training.mixed_precision_param": dtype("train.amp", only=("bf16", "fp16", "fp8")),
    "training.enable_cpu_offload": parallel.offload("dist.param_offload"),
    "training.compile": flag("compile.on"),
    "compile.enable": flag("compile.on"),
    "activation_checkpoint.mode": _mode,
    "optimizer.name": meanings.optimizer,
    "optimizer.implementation": both(
        lambda value: iter((Claim("optimizer.fused", value=value == "fused"),)),
        vocabulary_job.implementation,
    ),
    "optimizer.lr": vocabulary_lint.rate,
    "optimizer.weight_decay": ratio("train.weight_decay"),
    "lr_scheduler.warmup_steps": vocabulary_lint.warmup,
    "training.warmup_steps": vocabulary_lint.warmup,
    "lr_scheduler.decay_type": vocabulary_lint.scheduler,
    "training.max_norm": ratio("train.max_grad_norm"),
    "checkpoint.interval": ratio("save.steps"),
    "checkpoint.keep_latest_k": count("save.limit"),
    "validator.freq": ratio("eval.steps"),
    "validation.freq": ratio("eval.steps"),
    "validation.local_batch_size": count("eval.batch"),
    "checkpoint.load_only": flag("resume.on"),
    **vocabulary_training.TORCHTITAN,
}


SECTIONS = (
    *("optimizer", "lr_scheduler", "parallelism", "checkpoint", "activation_checkpoint"),
    *("dataloader", "validator", "metrics", "compile"),
)


def matches(settings: Settings) -> bool:
    """Say whether the sections are torchtitan's."""
    if settings.names("training", "parallelism") == 2 or settings.names("job", "training") == 2:
        return any(row.key.startswith("training.") for row in settings)
    return settings.names("activation_checkpoint", "training", "metrics") >= 3


def matches_sections(settings: Settings) -> bool:
    """Say whether the calls inside a call of a script are torchtitan's sections."""
    return settings.names("training") == 1 and settings.names(*SECTIONS) >= 2


def closes(settings: Settings) -> tuple[str, ...]:
    """Close the job's config where model and training stand together."""
    return ("train-config",) if settings.names("model", "training", "optimizer") == 3 else ()


def derived(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Read model name with flavour, and the way of sharding from the degrees."""
    name, flavour = settings.get("model.name"), settings.value("model.flavor")
    if name is not None:
        full = f"{name.value}-{flavour}" if flavour else str(name.value)
        yield Claim("model.name", full), name
    tensor = settings.get("parallelism.tensor_parallel_degree")
    shard = settings.get("parallelism.data_parallel_shard_degree")
    degree = scalars.as_count(shard.value) if shard else None
    if shard is not None and degree is not None and degree != 1:
        yield Claim("dist.kind", "fsdp2"), shard
    elif tensor is not None and (scalars.as_count(tensor.value) or 1) > 1:
        yield Claim("dist.kind", "tensor"), tensor
    mode = next((row for row in settings if row.key == "activation_checkpoint.mode"), None)
    if mode is not None and mode.value is None:  # `none` is a word of its own on a command line
        yield Claim("train.grad_checkpointing", value=False), mode
    if settings.rows:
        yield Claim("job.task", "pretrain"), settings.rows[0]


DIALECT = Dialect("torchtitan", "torchtitan", KEYS, matches, closes, derived, common=False)
