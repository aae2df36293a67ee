"""DPO and GRPO of TRL: sequences per step, reference models, what is checked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import llama, tokenizer

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")
peft = pytest.importorskip("peft")
datasets = pytest.importorskip("datasets")

USUAL = {"use_cpu": True, "report_to": "none", "bf16": False, "gradient_checkpointing": False}
PAIRS = [{"prompt": "a b", "chosen": "c d", "rejected": "e"}] * 4


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A bf16 Llama with its tokenizer on disk: TRL loads the reference by name."""
    folder = tmp_path / "model"
    llama().to(torch.bfloat16).save_pretrained(folder)
    tokenizer(pad="<pad>").save_pretrained(folder)
    return folder


def dpo(folder: Path, *, given: Any = None, **settings: Any) -> Any:
    """Return a DPOTrainer of the saved model."""
    config = trl.DPOConfig(output_dir=str(folder / "out"), **USUAL, **settings)
    return trl.DPOTrainer(
        model=str(folder),
        args=config,
        train_dataset=datasets.Dataset.from_list(PAIRS),
        processing_class=tokenizer(pad="<pad>"),
        **(given or {}),
    )


LORA = peft.LoraConfig(task_type="CAUSAL_LM")


@proves("dpo-double-batch")
def test_chosen_and_rejected_go_through_the_model_together(saved: Path) -> None:
    """A DPO batch of 2 pairs is one forward of 4 sequences."""
    made = dpo(saved, per_device_train_batch_size=2)
    rows: list[int] = []
    made.model.register_forward_pre_hook(
        lambda _, __, given: rows.append(given["input_ids"].shape[0]), with_kwargs=True
    )
    batch = next(iter(made.get_train_dataloader()))
    made.compute_loss(made.model, batch)
    assert rows[0] == 4


@proves("dpo-ref-model-copy", "dpo-explicit-ref-with-peft")
def test_full_dpo_loads_a_second_model_and_lora_none(saved: Path) -> None:
    """Without PEFT DPOTrainer loads a whole reference model, with PEFT it needs none."""
    full = dpo(saved)
    assert full.ref_model is not None
    sizes = {sum(p.numel() for p in m.parameters()) for m in (full.model, full.ref_model)}
    assert len(sizes) == 1
    assert dpo(saved, given={"peft_config": LORA}).ref_model is None


@proves("dpo-explicit-ref-with-peft")
def test_an_explicit_reference_stays_beside_the_adapter(saved: Path) -> None:
    """A ref_model object given together with peft_config is kept: a second full model."""
    made = dpo(saved, given={"peft_config": LORA, "ref_model": llama()})
    assert made.ref_model is not None


@proves("dpo-ref-model-copy")
def test_log_probabilities_can_be_computed_beforehand(saved: Path) -> None:
    """precompute_ref_log_probs=True leaves no reference model beside the policy."""
    made = dpo(saved, precompute_ref_log_probs=True)
    next(iter(made.get_train_dataloader()))
    assert getattr(made, "ref_model", None) is None


def grpo(folder: Path, **settings: Any) -> Any:
    """Return a GRPOTrainer of the saved model."""
    batch = {"per_device_train_batch_size": 8, **settings}
    given = {"peft_config": batch.pop("peft_config")} if "peft_config" in batch else {}
    return trl.GRPOTrainer(
        model=str(folder),
        args=trl.GRPOConfig(output_dir=str(folder / "out"), **USUAL, **batch),
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        train_dataset=datasets.Dataset.from_list([{"prompt": "a b"}] * 8),
        processing_class=tokenizer(pad="<pad>"),
        **given,
    )


@proves("grpo-ref-when-beta")
def test_a_reference_is_loaded_only_for_a_beta(saved: Path) -> None:
    """With beta 0.0, the default, no reference is loaded; beta=0.04 loads one, unless with LoRA."""
    assert grpo(saved).ref_model is None
    assert grpo(saved, beta=0.04).ref_model is not None
    assert grpo(saved, beta=0.04, peft_config=LORA).ref_model is None


def config(folder: Path, **settings: Any) -> Any:
    return trl.GRPOConfig(output_dir=str(folder), **USUAL, **settings)


@proves("grpo-batch-divisible")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"per_device_train_batch_size": 4}, "num_generations"),
        ({"num_generations": 1}, "at least 2 generations"),
        ({"generation_batch_size": 12, "per_device_train_batch_size": 4}, "num_generations"),
        (
            {"eval_strategy": "steps", "eval_steps": 1, "per_device_eval_batch_size": 3},
            "eval batch size",
        ),
    ],
)
def test_batches_that_generations_do_not_divide(
    given: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """GRPOConfig raises if num_generations (8) does not divide the generation or eval batch."""
    with pytest.raises(ValueError, match=said):
        config(tmp_path, **given)


@proves("grpo-batch-divisible")
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2},
        {"per_device_train_batch_size": 4, "steps_per_generation": 2},
        {"per_device_train_batch_size": 4, "num_generations": 4},
    ],
)
def test_batches_that_generations_divide(given: dict[str, Any], tmp_path: Path) -> None:
    """Batch 4 with 2 steps of accumulation or of generation makes the 8 that 8 generations need."""
    made = config(tmp_path, **given)
    assert made.generation_batch_size % made.num_generations == 0


@proves("grpo-generate-kv")
def test_the_generation_batch_is_batch_times_steps(tmp_path: Path) -> None:
    """steps_per_generation follows gradient_accumulation_steps and multiplies what is made."""
    made = config(tmp_path, per_device_train_batch_size=8, gradient_accumulation_steps=4)
    assert (made.steps_per_generation, made.generation_batch_size) == (4, 32)


@proves("grpo-vllm-colocate-memory")
def test_vllm_shares_the_gpu_with_the_trainer_by_default(tmp_path: Path) -> None:
    """vllm_mode defaults to colocate with 0.3 of the GPU and without sleep mode."""
    made = config(tmp_path)
    assert (made.vllm_mode, made.vllm_gpu_memory_utilization) == ("colocate", 0.3)
    assert made.vllm_enable_sleep_mode is False


@proves("trl-fp32-default")
def test_a_model_given_by_name_is_loaded_in_fp32(saved: Path) -> None:
    """SFTTrainer("name") loads fp32 from a bf16 checkpoint unless model_init_kwargs says dtype."""

    def dtype(**settings: Any) -> Any:
        made = trl.SFTTrainer(
            model=str(saved),
            args=trl.SFTConfig(output_dir=str(saved / "out"), **USUAL, **settings),
            train_dataset=datasets.Dataset.from_list([{"text": "a b"}]),
        )
        return made.model.dtype

    assert trl.ModelConfig().dtype == "float32"
    assert dtype() == torch.float32
    assert dtype(model_init_kwargs={"dtype": "bfloat16"}) == torch.bfloat16
    assert dtype(model_init_kwargs={"dtype": "auto"}) == torch.bfloat16
    assert transformers.AutoModelForCausalLM.from_pretrained(saved).dtype == torch.bfloat16


@proves("lora-on-lm-head")
@pytest.mark.parametrize(("target", "refused"), [("lm_head", True), ("q_proj", False)])
def test_trl_refuses_an_adapter_on_the_head(target: str, *, refused: bool, saved: Path) -> None:
    """SFTTrainer raises ValueError if LoRA targets lm_head, which its fused loss would pass by."""

    def make() -> Any:
        return trl.SFTTrainer(
            model=str(saved),
            args=trl.SFTConfig(output_dir=str(saved / "out"), **USUAL),
            train_dataset=datasets.Dataset.from_list([{"text": "a b"}]),
            peft_config=peft.LoraConfig(task_type="CAUSAL_LM", target_modules=[target]),
        )

    if refused:
        with pytest.raises(ValueError, match="adapter to `lm_head` is not supported"):
            make()
    else:
        make()


class ReachedError(Exception):
    """TRL handed over to the Trainer."""


@proves("zero3-peft-nonreentrant")
@pytest.mark.parametrize(("stage", "expected"), [(3, True), (2, False)])
def test_trl_forces_reentrant_checkpointing_under_zero_3(
    stage: int, *, expected: bool, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With PEFT and ZeRO-3 SFTTrainer makes use_reentrant True whatever was given."""
    settings = {**USUAL, "gradient_checkpointing": True}
    args = trl.SFTConfig(
        output_dir=str(saved / "out"),
        gradient_checkpointing_kwargs={"use_reentrant": False},
        **settings,
    )
    args.deepspeed_plugin = SimpleNamespace(zero_stage=stage)

    def stop(*_: Any, **__: Any) -> None:
        raise ReachedError

    monkeypatch.setattr(transformers.Trainer, "__init__", stop)
    with pytest.raises(ReachedError):
        trl.SFTTrainer(
            model=llama(),
            args=args,
            train_dataset=datasets.Dataset.from_list([{"text": "a b"}]),
            processing_class=tokenizer(pad="<pad>"),
            peft_config=LORA,
        )
    assert args.gradient_checkpointing_kwargs["use_reentrant"] is expected


@proves("checkpointing-off", "bf16-emulated")
def test_trl_configs_turn_checkpointing_and_bf16_on(tmp_path: Path) -> None:
    """SFT, DPO and GRPO configs have checkpointing on, and bf16 on unless fp16 is."""
    for kind in (trl.SFTConfig, trl.DPOConfig, trl.GRPOConfig):
        made = kind(output_dir=str(tmp_path), use_cpu=True)
        assert made.gradient_checkpointing is True
        assert made.bf16 is True
        assert kind(output_dir=str(tmp_path), use_cpu=True, fp16=True).bf16 is False
