"""nanoGPT and its kin: a Python file whose bare assignments are the settings.

batch_size = 12
block_size = 1024
gradient_accumulation_steps = 5 * 8
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import meanings
from oomdoctor.configs.claims import Claim, Table, count, dtype_of, flag, nothing
from oomdoctor.configs.mapping import Dialect
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain, Setting, Settings

MARKS = (
    *("block_size", "n_layer", "n_head", "n_embd", "max_iters", "lr_decay_iters", "eval_interval"),
    *("eval_iters", "log_interval", "always_save_checkpoint", "wandb_run_name", "init_from"),
    *("warmup_iters", "min_lr", "decay_lr", "wandb_log", "grad_clip", "out_dir"),
)
LEAST = 4


def _dtype(value: Plain) -> Iterator[Claim]:
    """Read the dtype of autocast: weights stay in fp32."""
    name = dtype_of(value)
    if name in ("bf16", "fp16"):
        yield Claim("train.amp", name)
    elif name == "fp32":
        yield Claim("train.amp", "none")
    if name:
        yield Claim("train.param_dtype", "fp32", 0, "nanoGPT autocasts", Origin.DERIVED)


KEYS: Table = {
    "batch_size": count("train.micro_batch"),
    "block_size": count("train.seq_len"),
    "n_layer": count("model.layers"),
    "n_head": count("model.heads"),
    "n_embd": count("model.hidden"),
    "dtype": _dtype,
    "compile": flag("compile.on"),
    "eval_interval": count("eval.steps"),
    "init_from": meanings.init_from,
    "device": nothing,
    "model": nothing,
}


def matches(settings: Settings) -> bool:
    """Say whether bare assignments carry nanoGPT's names."""
    bare = {row.key for row in settings if len(row.path) == 1}
    calls = any(len(row.path) > 1 for row in settings)
    marked = sum(mark in bare for mark in MARKS) >= LEAST
    return marked and ("gradient_accumulation_steps" in bare or not calls)


def closes(settings: Settings) -> tuple[str, ...]:
    """Close the job's config where the model's shape and the batch stand together."""
    needed = ("batch_size", "block_size", "n_layer", "gradient_accumulation_steps")
    return ("train-config",) if settings.names(*needed) == len(needed) else ()


def derived(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Name the task."""
    if settings.rows:
        yield Claim("job.task", "pretrain"), settings.rows[0]


DIALECT = Dialect("nanogpt", "nanogpt", KEYS, matches, closes, derived)
