"""The YAML that `accelerate config` writes and `accelerate launch --config_file` reads.

compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config: {fsdp_version: 2, fsdp_offload_params: false}
mixed_precision: bf16
num_processes: 8
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import (
    hf_trainer,
    meanings,
    parallel,
    scalars,
    vocabulary_dist,
    vocabulary_training,
)
from oomdoctor.configs.claims import Claim, Table, count, ratio, word
from oomdoctor.configs.mapping import Dialect
from oomdoctor.configs.vocabulary_run import STATE_DICT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain, Setting, Settings


def _dynamo(value: Plain) -> Iterator[Claim]:
    said = (scalars.as_text(value) or "no").lower()
    yield Claim("compile.on", said not in ("no", "none", "false"))


KEYS: Table = {
    "num_processes": count("dist.world_size"),
    "mixed_precision": meanings.precision,
    "distributed_type": parallel.strategy,
    "gpu_ids": parallel.gpu_list,
    "fsdp_config.fsdp_offload_params": parallel.offload("dist.param_offload"),
    "fsdp_config.offload_params": parallel.offload("dist.param_offload"),
    "fsdp_config.fsdp_state_dict_type": word("dist.state_dict", STATE_DICT),
    "fsdp_config.fsdp_auto_wrap_policy": parallel.wrap_policy,
    "fsdp_config.fsdp_backward_prefetch": parallel.prefetch,
    "fsdp_config.fsdp_backward_prefetch_policy": parallel.prefetch,
    "deepspeed_config.zero_stage": parallel.zero_stage,
    "deepspeed_config.offload_optimizer_device": parallel.offload("optimizer.offload"),
    "deepspeed_config.offload_param_device": parallel.offload("dist.param_offload"),
    "deepspeed_config.gradient_accumulation_steps": count("train.grad_accum"),
    "deepspeed_config.gradient_clipping": ratio("train.max_grad_norm"),
    "gradient_accumulation_steps": count("train.grad_accum"),
    "deepspeed_config.deepspeed_config_file": parallel.zero_file,
    "dynamo_config.dynamo_backend": _dynamo,
    **vocabulary_training.ACCELERATE,
    **vocabulary_dist.ACCELERATE,
}


def matches(settings: Settings) -> bool:
    """Say whether the keys are those of an accelerate file."""
    if settings.names("compute_environment", "distributed_type") == 2:
        return True
    marks = (
        "num_machines",
        "machine_rank",
        "main_training_function",
        "rdzv_backend",
        "downcast_bf16",
    )
    return settings.names("distributed_type", "num_processes") == 2 and settings.names(*marks) >= 1


def closes(settings: Settings) -> tuple[str, ...]:
    """Close what FSDP or ZeRO is told where the file configures it, and names no other."""
    kind = settings.value("distributed_type")
    if kind == "DEEPSPEED" and settings.get("deepspeed_config.zero_stage") is not None:
        other = settings.get("deepspeed_config.deepspeed_config_file")
        return ("zero-config",) if other is None else ()
    return ("fsdp-config",) if kind == "FSDP" else ()


def derived(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Read the launcher, FSDP's version, and one process as no sharing at all."""
    ranks = settings.first("num_processes", "distributed_type")
    if ranks is not None:
        yield Claim("job.launcher", "accelerate"), ranks
    kind = settings.get("distributed_type")
    if kind and kind.value == "FSDP":
        yield from hf_trainer.fsdp(settings)


DIALECT = Dialect("accelerate", "accelerate", KEYS, matches, closes, derived, common=False)
