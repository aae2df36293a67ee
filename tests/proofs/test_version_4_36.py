"""What held for transformers 4.36, peft 0.7, trl 0.7 and accelerate 0.25, all of late 2023."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import llama, rows, tokenizer

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.skipif(
    not transformers.__version__.startswith("4.36."), reason="holds for transformers 4.36 alone"
)


def arguments(folder: Path, **given: Any) -> Any:
    """Return TrainingArguments for the CPU that report to nobody."""
    usual = {"use_cpu": True, "report_to": "none", "disable_tqdm": True, "save_strategy": "no"}
    return transformers.TrainingArguments(output_dir=str(folder), **(usual | given))


@proves("evaluation-strategy-removed")
def test_evaluation_strategy_is_the_only_name(tmp_path: Path) -> None:
    """In 4.36 evaluation_strategy is the name, and eval_strategy raises TypeError."""
    made = arguments(tmp_path, evaluation_strategy="steps", eval_steps=5)
    assert made.evaluation_strategy == "steps"
    with pytest.raises(TypeError, match="eval_strategy"):
        arguments(tmp_path, eval_strategy="steps")


@proves("group-by-length-removed", "warmup-ratio-removed", "fp16-opt-level-dead")
def test_the_old_names_are_taken(tmp_path: Path) -> None:
    """4.36 accepts group_by_length, warmup_ratio and fp16_opt_level."""
    made = arguments(tmp_path, group_by_length=True, warmup_ratio=0.03, fp16_opt_level="O2")
    assert made.get_warmup_steps(1000) == 30


@proves("removed-v5-args")
@pytest.mark.parametrize("name", ["no_cuda", "overwrite_output_dir", "save_safetensors"])
def test_arguments_that_version_5_dropped_are_taken(name: str, tmp_path: Path) -> None:
    """4.36 accepts no_cuda, overwrite_output_dir and save_safetensors."""
    arguments(tmp_path, **{name: True})


@proves("optim-args-offload-fake")
def test_offload_was_no_optimizer_argument_either(tmp_path: Path) -> None:
    """In 4.36 as well optim_args="offload" raises ValueError when the optimizer is built."""
    made = transformers.Trainer(
        model=llama(),
        args=arguments(tmp_path, optim="adamw_torch", optim_args="offload"),
        train_dataset=rows(),
    )
    with pytest.raises(ValueError, match="unpack"):
        made.create_optimizer()


@proves("accelerator-cpu-offload-fake")
def test_the_accelerator_had_no_cpu_offload_either() -> None:
    """Accelerator(cpu_offload=True) raises TypeError in accelerate 0.25 as well."""
    accelerate = pytest.importorskip("accelerate")
    with pytest.raises(TypeError, match="cpu_offload"):
        accelerate.Accelerator(cpu_offload=True)


@proves("constant-length-dataset-gone")
@pytest.mark.parametrize("name", ["ConstantLengthDataset", "DataCollatorForCompletionOnlyLM"])
def test_the_packing_classes_were_there(name: str) -> None:
    """TRL 0.7 has ConstantLengthDataset and DataCollatorForCompletionOnlyLM."""
    trainer = pytest.importorskip("trl.trainer")
    assert hasattr(trainer, name)


@proves("pad-eq-eos-labels")
def test_the_collator_hid_eos_then_as_well() -> None:
    """In 4.36 as well pad = eos sets the label of each real eos to -100."""
    collator = transformers.DataCollatorForLanguageModeling(tokenizer(pad="</s>"), mlm=False)
    assert collator([{"input_ids": [4, 5, 3]}])["labels"][0].tolist() == [4, 5, -100]


@proves("adamw-foreach-temporaries")
def test_the_default_optimizer_was_not_fused(tmp_path: Path) -> None:
    """In 4.36 optim is adamw_torch unless asked otherwise, not the fused one."""
    assert arguments(tmp_path).optim == "adamw_torch"


@proves("packing-old-without-flash", "use-cache-breaks-packing")
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_restarting_positions_isolated_nothing(attention: str) -> None:
    """In 4.36 packed samples see each other under sdpa and eager in spite of position_ids."""
    model = llama(attn_implementation=attention, initializer_range=0.5).eval()
    first, second = [5, 9, 7], [11, 6, 8, 10]
    places = torch.tensor([[0, 1, 2, 0, 1, 2, 3]])
    with torch.no_grad():
        alone = model(torch.tensor([second]), use_cache=False).logits
        packed = model(torch.tensor([first + second]), position_ids=places, use_cache=False)
    assert float((alone - packed.logits[:, 3:]).abs().max()) > 0.01


@proves("fp32-weights-by-default-v4")
def test_weights_were_loaded_in_fp32(tmp_path: Path) -> None:
    """In 4.36 from_pretrained without torch_dtype gives fp32 from a bf16 checkpoint."""
    llama().to(torch.bfloat16).save_pretrained(tmp_path)
    assert transformers.AutoModelForCausalLM.from_pretrained(tmp_path).dtype == torch.float32


@proves("report-to-default")
def test_everything_installed_was_reported_to(tmp_path: Path) -> None:
    """In 4.36 an unset report_to means every installed integration."""
    made = transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    assert made.report_to == transformers.integrations.get_available_reporting_integrations()


@proves("fp16-and-bf16")
def test_fp16_and_bf16_together_were_refused(tmp_path: Path) -> None:
    """In 4.36 as well fp16 with bf16 raises ValueError."""
    with pytest.raises(ValueError, match="fp16 and bf16"):
        arguments(tmp_path, fp16=True, bf16=True)
