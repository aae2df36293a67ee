"""Quantised weights: their bytes, what stays in 16 bit, and what training does with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import llama, trainer

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
bitsandbytes = pytest.importorskip("bitsandbytes")

WIDTH, INNER = 128, 256


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A bf16 checkpoint of a small Llama."""
    model = llama(hidden_size=WIDTH, intermediate_size=INNER).to(torch.bfloat16)
    model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def loaded(folder: Path, **given: Any) -> Any:
    """Load the checkpoint in 4 bit on the CPU."""
    config = transformers.BitsAndBytesConfig(load_in_4bit=True, **given)
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, quantization_config=config, device_map={"": "cpu"}, dtype=torch.bfloat16
    )


def bytes_per_value(weight: Any, values: int) -> float:
    """Return what a 4-bit weight takes with all its constants."""
    state = weight.quant_state
    parts = [weight.data, state.absmax]
    if state.nested:
        parts.append(state.state2.absmax)
    return sum(part.numel() * part.element_size() for part in parts) / values


@proves("weights-exceed-gpu", "bnb4-no-double-quant")
@pytest.mark.parametrize(
    ("double", "expected"), [(False, 0.5 + 4 / 64), (True, 0.5 + 1 / 64 + 4 / (64 * 256))]
)
def test_bytes_of_a_4_bit_weight(*, double: bool, expected: float) -> None:
    """nf4 takes 0.5625 bytes per value, with double quantisation 0.516."""
    weight = bitsandbytes.nn.Params4bit(
        torch.randn(1024, 1024), requires_grad=False, quant_type="nf4", compress_statistics=double
    ).to("cpu")
    assert expected == pytest.approx(bytes_per_value(weight, 1024 * 1024), rel=0.001)


@proves("weights-exceed-gpu")
def test_embeddings_head_and_norms_are_not_quantised(checkpoint: Path) -> None:
    """load_in_4bit quantises the linear layers alone: embedding, lm_head and norms stay bf16."""
    model = loaded(checkpoint)
    kept = {n for n, p in model.named_parameters() if not hasattr(p, "quant_state")}
    assert {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"} <= kept
    assert not any("proj" in name for name in kept)


@proves("bnb4-fp4-default", "bnb4-no-double-quant", "bnb4-compute-dtype-default")
def test_defaults_of_the_4_bit_config() -> None:
    """BitsAndBytesConfig(load_in_4bit=True) is fp4, computes in fp32 and quantises once."""
    config = transformers.BitsAndBytesConfig(load_in_4bit=True)
    assert config.bnb_4bit_quant_type == "fp4"
    assert config.bnb_4bit_compute_dtype == torch.float32
    assert config.bnb_4bit_use_double_quant is False


@proves("fsdp-qlora-quant-storage")
def test_4_bit_codes_are_stored_as_uint8_by_default() -> None:
    """bnb_4bit_quant_storage defaults to uint8, an integer dtype."""
    config = transformers.BitsAndBytesConfig(load_in_4bit=True)
    assert config.bnb_4bit_quant_storage == torch.uint8


@proves("both-8bit-and-4bit")
def test_8_and_4_bit_together_are_refused() -> None:
    """load_in_8bit with load_in_4bit raises ValueError."""
    with pytest.raises(ValueError, match="both"):
        transformers.BitsAndBytesConfig(load_in_8bit=True, load_in_4bit=True)


@proves("kbit-prepare-fp32-upcast")
def test_preparing_for_k_bit_training_casts_embeddings_and_head_to_fp32(checkpoint: Path) -> None:
    """prepare_model_for_kbit_training makes every unquantised parameter fp32, not norms alone."""
    model = loaded(checkpoint)
    assert model.lm_head.weight.dtype == torch.bfloat16
    ready = peft.prepare_model_for_kbit_training(model)
    rest = [p for p in ready.parameters() if not hasattr(p, "quant_state")]
    assert {p.dtype for p in rest} == {torch.float32}
    assert ready.model.embed_tokens.weight.dtype == torch.float32
    assert ready.lm_head.weight.dtype == torch.float32
    assert ready.is_gradient_checkpointing


@proves("kbit-prepare-fp32-upcast")
@pytest.mark.parametrize(
    ("method", "dtype"),
    [
        ("bitsandbytes", torch.float32),
        *((name, torch.bfloat16) for name in ("gptq", "aqlm", "eetq", "hqq", "torchao")),
    ],
)
def test_models_of_other_quantisers_are_not_cast(method: str, dtype: Any) -> None:
    """For GPTQ, AQLM, EETQ, HQQ and torchao models no parameter is cast to fp32."""
    model = llama().to(torch.bfloat16)
    model.quantization_method = method
    setattr(model, "is_loaded_in_4bit" if method == "bitsandbytes" else f"is_{method}", True)
    if method in ("aqlm", "eetq", "hqq"):
        setattr(model, f"is_{method}_quantized", True)
    ready = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    assert {p.dtype for p in ready.parameters()} == {dtype}


def lora(model: Any) -> Any:
    return peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM"))


@proves("full-ft-on-quantized")
def test_a_quantised_model_without_an_adapter_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    """Trainer raises on a purely quantised model and takes it with LoRA, IA3 or prompt tuning."""
    with pytest.raises(ValueError, match="purely quantized"):
        trainer(tmp_path, loaded(checkpoint))
    trainer(tmp_path, lora(loaded(checkpoint)))
    trainer(
        tmp_path, peft.get_peft_model(loaded(checkpoint), peft.IA3Config(task_type="CAUSAL_LM"))
    )
    prompt = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    trainer(tmp_path, peft.get_peft_model(loaded(checkpoint), prompt))


@proves("merge-quantized-base")
def test_merging_into_a_4_bit_layer_quantises_again(checkpoint: Path) -> None:
    """merge_and_unload runs on a 4-bit base without dequantize(), warns, and stays 4-bit."""
    model = lora(loaded(checkpoint))
    with pytest.warns(UserWarning, match="rounding errors"):
        merged = model.merge_and_unload()
    layer = merged.model.layers[0].self_attn.q_proj
    assert isinstance(layer, bitsandbytes.nn.Linear4bit)
    assert layer.weight.dtype == torch.uint8


@proves("merge-gptq")
def test_merging_into_gptq_is_refused() -> None:
    """merge_and_unload on a GPTQ model raises ValueError."""
    base = llama()
    base.quantization_method = "gptq"
    with pytest.raises(ValueError, match="gptq quantized"):
        lora(base).merge_and_unload()
