"""DeepSpeed JSON, whose values may be "auto" (filled in by the trainer, so they say nothing).

{"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"},
 "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true}}}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import (
    meanings,
    parallel,
    vocabulary_dist,
    vocabulary_lint,
    vocabulary_training,
)
from oomdoctor.configs.claims import Claim, Table, flag, ratio, when_true
from oomdoctor.configs.mapping import Dialect

if TYPE_CHECKING:
    from oomdoctor.configs.setting import Settings

KEYS: Table = {
    **vocabulary_training.DEEPSPEED,
    **vocabulary_dist.DEEPSPEED,
    "bf16.enabled": when_true(Claim("train.amp", "bf16")),
    "bfloat16.enabled": when_true(Claim("train.amp", "bf16")),
    "fp16.enabled": when_true(Claim("train.amp", "fp16")),
    "bf16": when_true(Claim("train.amp", "bf16")),
    "fp16": when_true(Claim("train.amp", "fp16")),
    "optimizer.type": meanings.optimizer,
    "optimizer.params.lr": vocabulary_lint.rate,
    "optimizer.params.weight_decay": ratio("train.weight_decay"),
    "scheduler.type": vocabulary_lint.scheduler,
    "scheduler.params.warmup_num_steps": vocabulary_lint.warmup,
    "gradient_clipping": ratio("train.max_grad_norm"),
    "zero_optimization.stage": parallel.zero_stage,
    "zero_optimization.offload_optimizer.device": parallel.offload("optimizer.offload"),
    "zero_optimization.offload_param.device": parallel.offload("dist.param_offload"),
    "zero_optimization.cpu_offload": parallel.offload("optimizer.offload"),
    "zero_optimization.cpu_offload_params": parallel.offload("dist.param_offload"),
    "zero_optimization.contiguous_gradients": flag("dist.contiguous_gradients"),
    "zero_optimization": when_true(Claim("dist.kind", "zero1")),
}
BATCH = ("train_micro_batch_size_per_gpu", "train_batch_size")


def matches(settings: Settings) -> bool:
    """Say whether the keys are those of a DeepSpeed config."""
    if "zero_optimization" in settings.top:
        return True
    nested = any(row.key in ("fp16.enabled", "bf16.enabled") for row in settings)
    return settings.names(*BATCH) >= 1 and (
        nested or settings.names("optimizer", "steps_per_print") >= 1
    )


def closes(settings: Settings) -> tuple[str, ...]:
    """Close what ZeRO is told where the file configures it."""
    return ("zero-config",) if "zero_optimization" in settings.top else ()


DIALECT = Dialect("deepspeed", "deepspeed", KEYS, matches, closes, common=False)
