"""The DeepSpeed configuration: what is checked, what is ignored, what the defaults are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import arguments, llama

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
zero = pytest.importorskip("deepspeed.runtime.zero.config")
integration = pytest.importorskip("transformers.integrations.deepspeed")

DEVICE = {"device": "cpu"}


def finished(folder: Path, config: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """Return the config as the Trainer completes it for a hidden size of 32."""
    held = integration.HfTrainerDeepSpeedConfig(config)
    args = arguments(folder, per_device_train_batch_size=1, **settings)
    held.trainer_config_process(args)
    held.trainer_config_finalize(args, llama(), 10)
    return held.config


@proves("deepspeed-batch-mismatch")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("train_micro_batch_size_per_gpu", 4),
        ("train_batch_size", 64),
        ("gradient_accumulation_steps", 8),
        ("gradient_clipping", 0.3),
    ],
)
def test_values_that_differ_from_the_trainer_are_refused(
    key: str, value: float, tmp_path: Path
) -> None:
    """A batch, accumulation or clipping unlike the Trainer's raises ValueError and is named."""
    with pytest.raises(ValueError, match=f"ds {key}={value}"):
        finished(tmp_path, {key: value})


@proves("deepspeed-batch-mismatch")
def test_auto_takes_the_values_of_the_trainer(tmp_path: Path) -> None:
    """The value "auto" takes batch, accumulation and clipping from the Trainer."""
    keys = ("train_micro_batch_size_per_gpu", "train_batch_size", "gradient_accumulation_steps")
    made = finished(tmp_path, dict.fromkeys(keys, "auto"), gradient_accumulation_steps=8)
    assert [made[key] for key in keys] == [1, 8, 8]


@proves("zero-buckets-large")
def test_buckets_default_to_half_a_billion_elements(tmp_path: Path) -> None:
    """Buckets for reduce and allgather default to 5e8 elements; "auto" makes the first hidden^2."""
    made = zero.DeepSpeedZeroConfig(stage=2)
    assert (made.reduce_bucket_size, made.allgather_bucket_size) == (5e8, 5e8)
    auto = finished(tmp_path, {"zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}})
    assert auto["zero_optimization"]["reduce_bucket_size"] == 32 * 32


@proves("zero3-live-params")
def test_a_billion_parameters_may_stay_gathered() -> None:
    """stage3_max_live_parameters and stage3_max_reuse_distance default to 1e9 elements."""
    made = zero.DeepSpeedZeroConfig(stage=3)
    assert (made.max_live_parameters, made.max_reuse_distance) == (1e9, 1e9)


@proves("offload-param-needs-stage3")
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_parameter_offload_is_accepted_at_every_stage(stage: int, tmp_path: Path) -> None:
    """offload_param below stage 3 raises nothing, neither in DeepSpeed nor in the Trainer."""
    made = zero.DeepSpeedZeroConfig(stage=stage, offload_param=DEVICE)
    assert made.offload_param.device == "cpu"
    finished(tmp_path, {"zero_optimization": {"stage": stage, "offload_param": DEVICE}})


@proves("deprecated-cpu-offload-key")
def test_cpu_offload_is_mapped_to_the_new_key() -> None:
    """cpu_offload: true is taken as offload_optimizer to the CPU."""
    made = zero.DeepSpeedZeroConfig(stage=2, cpu_offload=True)
    assert made.offload_optimizer.device == "cpu"


@proves("zero3-device-map")
@pytest.mark.parametrize(("stage", "refused"), [(3, True), (2, False)])
def test_a_device_map_is_refused_under_stage_3(
    stage: int, *, refused: bool, tmp_path: Path
) -> None:
    """With a live stage-3 config from_pretrained(device_map=...) raises, with stage 2 not."""
    llama().save_pretrained(tmp_path)
    alive = integration.HfDeepSpeedConfig({"zero_optimization": {"stage": stage}})
    check = transformers.integrations.accelerate.check_and_set_device_map
    if refused:
        with pytest.raises(ValueError, match="not compatible with passing a `device_map`"):
            transformers.AutoModelForCausalLM.from_pretrained(tmp_path, device_map="auto")
    else:
        assert check({"": 0}) == {"": 0}
    del alive
    assert check({"": 0}) == {"": 0}
