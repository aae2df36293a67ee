"""What Axolotl, LLaMA-Factory and torchtune check themselves."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.proofs.proving import proves


def axolotl(**changes: Any) -> Any:
    """Return the config as Axolotl's schema reads it, on a machine of two pretended cards."""
    schemas = pytest.importorskip("axolotl.utils.schemas.config")
    usual: dict[str, Any] = {
        "base_model": "some/model",
        "datasets": [{"path": "some/data", "type": "alpaca"}],
        "micro_batch_size": 1,
        "gradient_accumulation_steps": 1,
        "learning_rate": 1e-4,
        "sequence_len": 512,
        "capabilities": {"bf16": True, "fp8": False, "n_gpu": 2, "compute_capability": "sm_80"},
        "env_capabilities": {"torch_version": "2.8.0"},
    }
    return schemas.AxolotlConfigWCapabilities(**(usual | changes))


def axolotl_refusal(**changes: Any) -> str:
    with pytest.raises(ValueError, match=r".") as error:
        axolotl(**changes)
    return str(error.value)


@proves("axolotl-prefetch-256")
def test_axolotl_prefetches_256_batches_where_nothing_is_said() -> None:
    """With workers, pinning and prefetching all unset Axolotl takes n_gpu workers and 256."""
    made = axolotl()
    assert (made.dataloader_num_workers, made.dataloader_prefetch_factor) == (2, 256)
    assert made.dataloader_pin_memory is True
    assert axolotl(dataloader_num_workers=2).dataloader_prefetch_factor is None


@proves("axolotl-lora-kernels-8bit")
@pytest.mark.parametrize("kernel", ["lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel"])
def test_axolotl_refuses_its_lora_kernels_in_8_bit(kernel: str) -> None:
    """A LoRA kernel with adapter lora and load_in_8bit is refused."""
    said = axolotl_refusal(adapter="lora", load_in_8bit=True, lora_r=8, **{kernel: True})
    assert "not compatible with 8-bit LoRA" in said


@proves("fp8-unsupported")
def test_axolotl_refuses_fp8_on_a_card_without_it() -> None:
    """Axolotl's fp8: true on a card whose capabilities lack fp8 is refused."""
    assert "fp8 is not supported on this GPU" in axolotl_refusal(fp8=True)


SHARDED = {"fsdp_config": {"offload_params": True}, "adapter": None}


@proves("bnb-optim-with-fsdp2")
@pytest.mark.parametrize("optimizer", ["adamw_8bit", "adamw_bnb_8bit"])
def test_axolotl_refuses_bitsandbytes_optimizers_with_fsdp2(optimizer: str) -> None:
    """fsdp_version 2 with an 8-bit Adam of bitsandbytes is refused, adamw_torch_8bit is not."""
    said = axolotl_refusal(
        fsdp_version=2, fsdp_config={"reshard_after_forward": True}, optimizer=optimizer
    )
    assert "FSDP2 not compatible" in said
    axolotl(
        fsdp_version=2, fsdp_config={"reshard_after_forward": True}, optimizer="adamw_torch_8bit"
    )


@proves("fsdp-offload-with-8bit-optim")
def test_axolotl_refuses_8_bit_optimizers_with_fsdp1_offload() -> None:
    """Offloaded FSDP1 with an 8-bit optimizer is refused, with adamw_torch it is not."""
    said = axolotl_refusal(fsdp_version=1, **SHARDED, optimizer="adamw_bnb_8bit")
    assert "FSDP Offload not compatible" in said
    axolotl(fsdp_version=1, **SHARDED, optimizer="adamw_torch")


@proves("evaluation-strategy-removed")
def test_axolotl_copies_the_old_name_of_the_strategy() -> None:
    """Axolotl maps evaluation_strategy to eval_strategy, so its configs may keep the old name."""
    made = axolotl(evaluation_strategy="steps", val_set_size=0.1)
    assert made.eval_strategy == "steps"


def llamafactory(**changes: Any) -> str:
    """Return what LLaMA-Factory's argument check says of a config, "" if nothing."""
    hparams = pytest.importorskip("llamafactory.hparams")
    parser = pytest.importorskip("llamafactory.hparams.parser")
    kinds = (hparams.ModelArguments, hparams.DataArguments, hparams.FinetuningArguments)
    transformers = pytest.importorskip("transformers")
    usual = {"model_name_or_path": "some/model", "template": "default"}
    made = transformers.HfArgumentParser(kinds).parse_dict(usual | changes)
    try:
        parser._verify_model_args(*made)
    except ValueError as error:
        return str(error)
    return ""


@proves("llamafactory-quant-full")
@pytest.mark.parametrize(("kind", "fine"), [("full", False), ("freeze", False), ("lora", True)])
def test_llama_factory_trains_quantised_models_with_adapters_alone(
    kind: str, *, fine: bool
) -> None:
    """quantization_bit with finetuning_type other than lora or oft raises ValueError."""
    said = llamafactory(quantization_bit=4, finetuning_type=kind)
    assert (said == "") is fine
    assert fine or "LoRA or OFT" in said


@proves("resize-quantized")
def test_llama_factory_does_not_resize_quantised_models() -> None:
    """resize_vocab with quantization_bit raises ValueError, without it nothing is said."""
    assert "Cannot resize" in llamafactory(quantization_bit=4, resize_vocab=True)
    assert llamafactory(resize_vocab=True) == ""


def torchtune_recipe(name: str) -> Any:
    """Return a recipe's module; its folder is installed, but does not let itself be imported."""
    torchtune = pytest.importorskip("torchtune")
    file = Path(torchtune.__file__).parents[1] / "recipes" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        pytest.skip(f"{file} is not installed")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@proves("optimizer-in-bwd-with-accum")
@pytest.mark.parametrize(
    "changes", [{"gradient_accumulation_steps": 8}, {"clip_grad_norm": 1.0}], ids=str
)
def test_torchtune_steps_in_backward_without_accumulation(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    """optimizer_in_bwd with accumulation or clipping is refused when the recipe is built."""
    recipe = torchtune_recipe("full_finetune_single_device").FullFinetuneRecipeSingleDevice
    omegaconf = pytest.importorskip("omegaconf")
    usual = {
        "device": "cpu",
        "dtype": "fp32",
        "output_dir": str(tmp_path),
        "seed": 1,
        "epochs": 1,
        "max_steps_per_epoch": 1,
        "gradient_accumulation_steps": 1,
        "optimizer_in_bwd": True,
        "resume_from_checkpoint": False,
        "enable_activation_checkpointing": False,
        "enable_activation_offloading": False,
    }
    recipe(omegaconf.OmegaConf.create(usual))
    with pytest.raises(RuntimeError, match="optimizer_in_bwd"):
        recipe(omegaconf.OmegaConf.create(usual | changes))
