"""What the libraries decide by the card, with a card pretended."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import llama, trainer
from tests.proofs.world import lone_world

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
accelerate = pytest.importorskip("accelerate")

__all__ = ["lone_world"]

WHEEL_12_8 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"]
WHEEL_12_6 = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]


def complaints(monkeypatch: pytest.MonkeyPatch, archs: list[str], capability: Any) -> list[str]:
    """Return torch's warnings about a card of this capability and a wheel of these archs."""
    cuda = torch.cuda
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(cuda, "get_arch_list", lambda: archs)
    monkeypatch.setattr(cuda, "device_count", lambda: 1)
    monkeypatch.setattr(cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(cuda, "get_device_name", lambda _: "Card")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        cuda._check_capability()
        cuda._check_cubins()
    return [str(one.message) for one in seen]


@proves("wheel-arch-missing")
@pytest.mark.parametrize(
    ("archs", "capability", "fits"),
    [
        (WHEEL_12_8, (7, 0), False),
        (WHEEL_12_8, (6, 1), False),
        (WHEEL_12_8, (8, 9), True),
        (WHEEL_12_8, (12, 1), True),
        (WHEEL_12_6, (7, 0), True),
        (WHEEL_12_6, (12, 0), False),
    ],
)
def test_code_of_the_same_major_fits_a_later_minor(
    archs: list[str], capability: tuple[int, int], *, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A card runs code of its major and no later minor: 8.9 runs sm_86, for 7.0 there is none."""
    assert (complaints(monkeypatch, archs, capability) == []) is fits


@proves("fp8-checkpoint-dequantized")
@pytest.mark.parametrize(("capability", "dequantised"), [((8, 0), True), ((8, 9), False)])
def test_fp8_checkpoints_are_dequantised_on_older_cards(
    capability: tuple[int, int], *, dequantised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below capability 8.9 a pre-quantised FP8 model is loaded dequantised, with a warning."""
    config = transformers.FineGrainedFP8Config()
    module = transformers.quantizers.quantizer_finegrained_fp8
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    quantizer = module.FineGrainedFP8HfQuantizer(config, pre_quantized=True)
    quantizer.validate_environment(device_map={"": 0})
    assert quantizer.quantization_config.dequantize is dequantised


@proves("fp16-unstable-bf16-checkpoint")
def test_a_value_that_bf16_holds_is_infinite_in_fp16() -> None:
    """70000 is finite in bf16 and infinite in fp16; T5 keeps the layer that overflows in fp32."""
    value = torch.tensor(70000.0)
    assert torch.isfinite(value.bfloat16())
    assert torch.isinf(value.half())
    assert "wo" in transformers.T5ForConditionalGeneration._keep_in_fp32_modules


@proves("device-map-auto-with-ddp")
@pytest.mark.usefixtures("lone_world")
def test_a_model_spread_over_devices_is_refused_in_a_distributed_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Accelerator.prepare raises for a device map of two entries, on one device as well."""
    made = accelerate.Accelerator(cpu=True)
    model = llama()
    assert made.verify_device_map(model) is False
    model.hf_device_map = {"": "cpu"}
    assert made.verify_device_map(model) is False
    model.hf_device_map = {"model": "cpu", "lm_head": "cpu"}
    with pytest.raises(ValueError, match="device_map='auto'"):
        made.prepare(model)
    monkeypatch.setenv("ACCELERATE_BYPASS_DEVICE_MAP", "true")
    made.prepare(model)


@proves("flash-fp32")
@pytest.mark.parametrize(("dtype", "warned"), [("float32", True), ("bfloat16", False)])
def test_flash_attention_in_fp32_is_warned_of(
    dtype: str,
    *,
    warned: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With an fp32 model transformers says that flash attention takes fp16 and bf16 only."""
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    transformers.utils.logging.warning_once.cache_clear()
    model = llama()
    model.config.dtype = getattr(torch, dtype)
    monkeypatch.setattr(type(model), "_flash_attn_import_error", lambda *_, **__: None)
    assert model._flash_attn_can_dispatch(2, is_init_check=True)
    assert ("only supports torch.float16 and torch.bfloat16" in caplog.text) is warned


@proves("wandb-watch")
@pytest.mark.parametrize(("watched", "calls"), [("all", 1), ("gradients", 1), ("false", 0)])
def test_the_environment_decides_whether_gradients_are_watched(
    watched: str, calls: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """WANDB_WATCH=all or gradients makes the Trainer call wandb.watch; the default does not."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_WATCH", watched)
    callback = transformers.integrations.WandbCallback()
    callback._wandb = MagicMock()
    made = trainer(tmp_path)
    callback.setup(made.args, made.state, made.model)
    assert callback._wandb.watch.call_count == calls


@proves("wandb-watch")
def test_watching_gradients_makes_a_histogram_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """wandb.watch hooks every parameter and summarises its whole gradient in each backward."""
    wandb_torch = pytest.importorskip("wandb.integration.torch.wandb_torch")
    seen: list[int] = []
    history = wandb_torch.TorchHistory()
    monkeypatch.setattr(history, "log_tensor_stats", lambda tensor, _: seen.append(tensor.numel()))
    layer = torch.nn.Linear(8, 8)
    history.add_log_gradients_hook(layer, log_freq=1)
    layer(torch.ones(1, 8)).sum().backward()
    assert sorted(seen) == [8, 64]


@proves("lightning-32-true")
def test_lightning_trains_in_fp32_unless_told_otherwise() -> None:
    """lightning.Trainer without precision is 32-true."""
    lightning = pytest.importorskip("lightning")
    made = lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    assert made.precision == "32-true"
    assert made.gradient_clip_val is None
