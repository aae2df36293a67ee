"""torchtune YAML: `_component_` names what is built, `${key}` refers to another key.

model: {_component_: torchtune.models.llama3_1.lora_llama3_1_8b, lora_rank: 8}
checkpointer: {checkpoint_dir: /tmp/Meta-Llama-3.1-8B-Instruct}
batch_size: 2
enable_activation_checkpointing: True
dtype: bf16
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import meanings, parallel, scalars, vocabulary_lint, vocabulary_training
from oomdoctor.configs.claims import Claim, Table, count, dtype_of, flag, nothing, ratio, text
from oomdoctor.configs.mapping import Dialect
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain, Setting, Settings

LOSSES = {
    "cewithchunkedoutputloss": "chunked",
    "linearcrossentropyloss": "chunked",
    "crossentropyloss": "full",
}


def _dtype(value: Plain) -> Iterator[Claim]:
    name = dtype_of(value)
    if name:
        yield Claim("train.base_dtype", name)
        yield Claim("train.param_dtype", name)
        yield Claim("train.amp", "none")


def _model(value: Plain) -> Iterator[Claim]:
    builder = (scalars.as_text(value) or "").rpartition(".")[2].lower()
    if "lora_" in builder:
        yield Claim("lora.on", value=True)
    elif builder:
        yield Claim("lora.on", value=False, source="builder of a model without adapter")
    if builder.startswith("qlora_"):
        yield Claim("quant.kind", "bnb4", 0, "NF4 by torchao", Origin.STATED)


def _loss(value: Plain) -> Iterator[Claim]:
    name = (scalars.as_text(value) or "").rpartition(".")[2].lower()
    if name in LOSSES:
        yield Claim("loss.impl", LOSSES[name])
    elif name == "dpoloss":
        yield Claim("job.task", "dpo")


def _schedule(value: Plain) -> Iterator[Claim]:
    name = (scalars.as_text(value) or "").rpartition(".")[2]
    yield from vocabulary_lint.scheduler(name)


def _checkpoint(value: Plain) -> Iterator[Claim]:
    name = (scalars.as_text(value) or "").rstrip("/").rpartition("/")[2]
    if name and "$" not in name:
        yield Claim("model.name", name)


KEYS: Table = {
    "model._component_": _model,
    "policy_model._component_": _model,
    "model.lora_rank": count("lora.rank"),
    "model.lora_alpha": ratio("lora.alpha"),
    "model.lora_attn_modules": text("lora.targets"),
    "model.use_dora": flag("lora.dora"),
    "model.quantize_base": nothing,
    "checkpointer.checkpoint_dir": _checkpoint,
    "tokenizer.max_seq_len": count("train.seq_len"),
    "dataset.packed": flag("train.packing"),
    "batch_size": count("train.micro_batch"),
    "batch_size_val": count("eval.batch"),
    "forward_batch_size": count("train.micro_batch"),
    "gradient_accumulation_steps": count("train.grad_accum"),
    "optimizer._component_": meanings.optimizer,
    "optimizer.fused": flag("optimizer.fused"),
    "optimizer.lr": vocabulary_lint.rate,
    "optimizer.weight_decay": ratio("train.weight_decay"),
    "lr_scheduler._component_": _schedule,
    "lr_scheduler.num_warmup_steps": vocabulary_lint.warmup,
    "clip_grad_norm": ratio("train.max_grad_norm"),
    "model.lora_dropout": ratio("lora.dropout"),
    "optimizer": nothing,
    "loss._component_": _loss,
    "loss.num_output_chunks": count("loss.chunk"),
    "enable_activation_offloading": flag("train.offloads_activations"),
    "enable_activation_checkpointing": flag("train.grad_checkpointing"),
    "optimizer_in_bwd": flag("optimizer.in_backward"),
    "fsdp_cpu_offload": parallel.offload("dist.param_offload"),
    "fsdp.cpu_offload": parallel.offload("dist.param_offload"),
    "dtype": _dtype,
    "compile": flag("compile.on"),
    "epochs": count("train.epochs"),
    "resume_from_checkpoint": flag("resume.on"),
    "max_new_tokens": count("gen.max_new_tokens"),
    **vocabulary_training.TORCHTUNE,
}


def matches(settings: Settings) -> bool:
    """Say whether a component of torchtune is named."""
    return any(
        row.path[-1] == "_component_" and isinstance(row.value, str) and "torchtune" in row.value
        for row in settings
    )


def closes(settings: Settings) -> tuple[str, ...]:
    """Close the job's config of a recipe that trains."""
    whole = (
        settings.names("model", "policy_model") >= 1
        and settings.names("optimizer", "batch_size") == 2
    )
    return ("train-config",) if whole else ()


def derived(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Follow `${key}`, and tell the task from what is configured."""
    for row in settings:
        target = row.value if isinstance(row.value, str) else ""
        convert = KEYS.get(row.key)
        if target.startswith("${") and target.endswith("}") and convert is not None:
            referred = settings.value(target[2:-1].lower())
            yield from ((claim, row) for claim in convert(referred))
    yield from _adapted(settings)
    loss = (scalars.as_text(settings.value("loss._component_")) or "").lower()
    component = settings.first("dataset._component_", "dataset")
    if "policy_model" in settings.top:
        yield Claim("job.task", "ppo"), settings.rows[0]
    elif "dpo" not in loss and component is not None and "optimizer" in settings.top:
        yield Claim("job.task", "sft"), component
    elif "optimizer" not in settings.top:
        task = "evaluate" if "tasks" in settings.top else "generate"
        mark = settings.first("tasks", "prompt", "max_new_tokens")
        if mark is not None:
            yield Claim("job.task", task), mark


def _adapted(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Read all linears that get an adapter: those of attention, and what two switches add."""
    row = settings.get("model.lora_attn_modules")
    if row is None:
        return
    names = [*scalars.as_strings(row.value)]
    if settings.value("model.apply_lora_to_mlp") is True:
        names += ("gate_proj", "up_proj", "down_proj")
    if settings.value("model.apply_lora_to_output") is True:
        names.append("output")
    yield Claim("lora.targets", ",".join(names)), row


DIALECT = Dialect("torchtune", "torchtune", KEYS, matches, closes, derived, common=False)
