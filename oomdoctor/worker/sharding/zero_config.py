"""The config that DeepSpeed gets for a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from oomdoctor.model.job import Job

STAGES = {"zero1": 1, "zero2": 2, "zero3": 3}
HALF_BYTES = 2
PREFETCH, KEPT = 0.9, 10  # x hidden^2 and x hidden: what transformers fills in for "auto"


def config_of(job: Job, model: nn.Module) -> dict[str, Any]:
    """Return the config of a job as its trainer would complete it."""
    half = job.amp or job.dtype
    return {
        "train_micro_batch_size_per_gpu": job.batch,
        "gradient_accumulation_steps": job.grad_accum,
        "bf16": {"enabled": half == "bf16"},
        "fp16": {"enabled": half == "fp16"},
        "gradient_clipping": job.clip_norm or 0.0,
        "zero_optimization": _zero_of(job, model),
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "steps_per_print": 1 << 30,
    }


def _zero_of(job: Job, model: nn.Module) -> dict[str, Any]:
    sharding = job.sharding
    stage = STAGES[sharding.kind]
    zero: dict[str, Any] = {"stage": stage}
    if sharding.overlap is not None:
        zero["overlap_comm"] = sharding.overlap
    hidden = _hidden(model) if job.framework in ("transformers", "trl") else None
    if sharding.bucket_bytes is not None:
        zero["reduce_bucket_size"] = sharding.bucket_bytes // HALF_BYTES
    elif hidden is not None:
        zero["reduce_bucket_size"] = hidden * hidden
    if stage == STAGES["zero3"] and hidden is not None:
        zero["stage3_prefetch_bucket_size"] = int(PREFETCH * hidden * hidden)
        zero["stage3_param_persistence_threshold"] = KEPT * hidden
    if stage == STAGES["zero3"] and sharding.live_values is not None:
        zero["stage3_max_live_parameters"] = sharding.live_values
    if job.optimizer is not None and job.optimizer.offload is not None:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if sharding.offload_params and stage == STAGES["zero3"]:
        zero["offload_param"] = {"device": "cpu", "pin_memory": True}
    return zero


def _hidden(model: Any) -> int | None:
    config = getattr(model, "config", None)
    get = getattr(config, "get_text_config", None)
    found = getattr(config if get is None else get(), "hidden_size", None)
    return found if isinstance(found, int) else None
