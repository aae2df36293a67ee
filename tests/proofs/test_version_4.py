"""What held for transformers 4.57, peft 0.17 and trl 0.24, the last before version 5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import arguments, llama, rows, tokenizer, trainer

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")

pytestmark = pytest.mark.skipif(
    not transformers.__version__.startswith("4.57."), reason="holds for transformers 4.57 alone"
)

GONE_IN_5 = {
    "no_cuda": True,
    "adafactor": False,
    "overwrite_output_dir": True,
    "save_safetensors": True,
    "half_precision_backend": "auto",
    "include_inputs_for_metrics": False,
    "include_tokens_per_second": False,
    "jit_mode_eval": False,
    "past_index": -1,
    "fp16_opt_level": "O2",
    "logging_dir": "logs",
    "per_gpu_train_batch_size": 2,
}


@proves("removed-v5-args", "fp16-opt-level-dead")
@pytest.mark.parametrize("name", GONE_IN_5)
def test_version_4_takes_what_version_5_removed(name: str, tmp_path: Path) -> None:
    """The arguments that version 5 refuses are accepted by version 4.57."""
    arguments(tmp_path, **{name: GONE_IN_5[name]})


@proves("fp16-opt-level-dead")
def test_version_4_never_uses_apex(tmp_path: Path) -> None:
    """In 4.57 fp16_opt_level is accepted and does nothing: use_apex is False."""
    assert trainer(tmp_path, fp16_opt_level="O2").use_apex is False


@proves("warmup-ratio-removed", "group-by-length-removed")
def test_version_4_takes_the_old_names(tmp_path: Path) -> None:
    """warmup_ratio and group_by_length are accepted by version 4.57."""
    made = arguments(tmp_path, warmup_ratio=0.03, group_by_length=True)
    assert made.get_warmup_steps(1000) == 30


@proves("report-to-default", "report-to-null")
def test_version_4_reports_to_all_unless_told_otherwise(tmp_path: Path) -> None:
    """In version 4 an unset or null report_to means every installed integration."""
    default = transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    installed = transformers.integrations.get_available_reporting_integrations()
    assert default.report_to == installed
    trainer(tmp_path, report_to=None)


@proves("fp32-weights-by-default-v4")
def test_version_4_loads_fp32_whatever_the_checkpoint(tmp_path: Path) -> None:
    """from_pretrained without dtype gives fp32 weights from a bf16 checkpoint (version 4)."""
    llama().to(torch.bfloat16).save_pretrained(tmp_path)
    load = transformers.AutoModelForCausalLM.from_pretrained
    assert load(tmp_path).dtype == torch.float32
    assert load(tmp_path, dtype="auto").dtype == torch.bfloat16


@proves("reentrant-default-v4")
def test_version_4_checkpoints_reentrantly(tmp_path: Path) -> None:
    """gradient_checkpointing_enable() without kwargs is use_reentrant=True in 4.57."""
    model = llama().train()
    model.gradient_checkpointing_enable()
    assert model.model.layers[0]._gradient_checkpointing_func.keywords == {"use_reentrant": True}
    assert trl.SFTConfig(output_dir=str(tmp_path), use_cpu=True).gradient_checkpointing_kwargs in (
        {"use_reentrant": False},
        None,
    )


@proves("lora-input-grads")
@pytest.mark.parametrize(
    ("kwargs", "fails"),
    [(None, True), ({"use_reentrant": True}, True), ({"use_reentrant": False}, False)],
)
def test_checkpointed_lora_has_no_gradients_in_version_4(
    kwargs: dict[str, Any] | None, *, fails: bool, tmp_path: Path
) -> None:
    """Trainer 4.57 with LoRA and checkpointing fails unless use_reentrant is False."""
    model = peft.get_peft_model(llama(), peft.LoraConfig(task_type="CAUSAL_LM"))
    made = trainer(
        tmp_path, model, gradient_checkpointing=True, gradient_checkpointing_kwargs=kwargs
    )
    if fails:
        with pytest.raises(RuntimeError, match="does not require grad"):
            made.train()
    else:
        made.train()


@proves("lora-input-grads")
def test_input_gradients_cure_checkpointed_lora_in_version_4(tmp_path: Path) -> None:
    """enable_input_require_grads() makes the same training run."""
    model = peft.get_peft_model(llama(), peft.LoraConfig(task_type="CAUSAL_LM"))
    model.enable_input_require_grads()
    trainer(tmp_path, model, gradient_checkpointing=True).train()


@proves("use-cache-eval-v4")
@pytest.mark.parametrize("checkpointing", [False, True])
def test_version_4_evaluates_with_a_cache(
    *, checkpointing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trainer 4.57 builds a KV cache for each evaluation batch, with checkpointing as well."""
    model = llama()
    made = trainer(
        tmp_path,
        model,
        given={"train_dataset": rows(), "eval_dataset": rows(8)},
        gradient_checkpointing=checkpointing,
    )
    made.train()
    cached: list[int] = []
    forward = type(model).forward

    def watched(*args: Any, **given: Any) -> Any:
        out = forward(*args, **given)
        layers = [] if out.past_key_values is None else out.past_key_values.layers
        cached.append(sum(layer.keys.numel() + layer.values.numel() for layer in layers))
        return out

    monkeypatch.setattr(model, "forward", lambda *a, **k: watched(model, *a, **k))
    made.evaluate()
    layers, batch, length, heads, width = 2, 8, 8, 2, 8
    size = 2 * layers * batch * length * heads * width
    assert cached == [size]


@proves("use-cache-with-checkpointing")
def test_version_4_drops_the_cache_in_checkpointed_training() -> None:
    """In 4.57 a checkpointed model drops the cache in training and keeps its config as it is."""
    model = llama().train()
    model.gradient_checkpointing_enable()
    assert model(torch.full((1, 4), 5)).past_key_values is None
    assert model.config.use_cache is True


@proves("padding-free-needs-truncation")
def test_old_trl_takes_padding_free_with_a_limit(tmp_path: Path) -> None:
    """TRL 0.24 accepts padding_free=True with its default max_length."""
    settings = {"output_dir": str(tmp_path), "use_cpu": True, "report_to": "none", "bf16": False}
    trl.SFTTrainer(
        model=llama(),
        args=trl.SFTConfig(**settings, padding_free=True),
        train_dataset=datasets.Dataset.from_list([{"text": "a b c"}]),
        processing_class=tokenizer(pad="<pad>"),
    )


@proves("trl-fp32-default")
def test_old_trl_leaves_the_dtype_to_transformers() -> None:
    """ModelConfig.dtype of TRL 0.24 is None; version 1.16 says float32."""
    assert trl.ModelConfig().dtype is None
