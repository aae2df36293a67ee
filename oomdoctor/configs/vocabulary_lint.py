"""Common key names of settings that decide correctness and speed rather than memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import meanings, scalars
from oomdoctor.configs.claims import (
    Claim,
    Convert,
    count,
    flag,
    ratio,
    text,
    word,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain

MAX_RATE = 100
SAVES = {**meanings.EVAL, "best": "best"}


def rate(value: Plain) -> Iterator[Claim]:
    """Read a learning rate; a number far above 1 is something else."""
    number = scalars.as_number(value)
    if number is not None and 0 <= number <= MAX_RATE:
        yield Claim("train.learning_rate", number)


def warmup(value: Plain) -> Iterator[Claim]:
    """Read warm-up steps; below 1 they are a share of all steps."""
    number = scalars.as_number(value)
    if number is not None and number >= 0:
        yield Claim("train.warmup_steps", number)


def scheduler(value: Plain) -> Iterator[Claim]:
    """Read a scheduler's name; a number or a switch is none."""
    if not isinstance(value, str) or scalars.as_number(value) is not None:
        return
    if scalars.as_bool(value) is None:
        yield from text("train.scheduler")(value.lower())


ROWS: tuple[tuple[str, Convert], ...] = (
    ("learning_rate lr base_lr base_learning_rate", rate),
    ("lr_scheduler_type lr_scheduler lr_schedule scheduler_type", scheduler),
    ("warmup_steps num_warmup_steps lr_warmup_steps warmup_iters", warmup),
    ("warmup_ratio", ratio("train.warmup_ratio")),
    (
        """
        max_grad_norm gradient_clipping gradient_clip_val clip_grad_norm grad_clip
        max_gradient_norm clip_grad
        """,
        ratio("train.max_grad_norm"),
    ),
    ("weight_decay adam_weight_decay", ratio("train.weight_decay")),
    ("label_smoothing_factor label_smoothing", ratio("train.label_smoothing")),
    ("lora_dropout", ratio("lora.dropout")),
    ("use_rslora peft_use_rslora rslora", flag("lora.rslora")),
    ("eval_steps", ratio("eval.steps")),
    ("save_strategy", word("save.strategy", SAVES)),
    ("save_steps checkpointing_steps", ratio("save.steps")),
    ("save_total_limit checkpoints_total_limit", count("save.limit")),
)
