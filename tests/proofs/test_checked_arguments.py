"""Combinations of arguments that the libraries check before training starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import arguments, llama, trainer

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")


@proves("fp16-and-bf16")
def test_fp16_and_bf16_together_are_refused(tmp_path: Path) -> None:
    """TrainingArguments and every TRL config raise ValueError if fp16 and bf16 are both true."""
    for config in (transformers.TrainingArguments, trl.SFTConfig):
        with pytest.raises(ValueError, match="fp16 and bf16"):
            config(output_dir=str(tmp_path), use_cpu=True, fp16=True, bf16=True)


@proves("tf32-unsupported")
def test_tf32_is_refused_without_the_hardware(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tf32=True raises ValueError where the card has no TF32 and is accepted where it has."""
    module = transformers.training_args
    monkeypatch.setattr(module, "is_torch_tf32_available", lambda: False)
    with pytest.raises(ValueError, match="Ampere"):
        arguments(tmp_path, tf32=True)
    monkeypatch.setattr(module, "is_torch_tf32_available", lambda: True)
    arguments(tmp_path, tf32=True)


@proves("bf16-no-hardware-old-torch")
def test_bf16_is_refused_where_torch_says_it_is_not_supported(tmp_path: Path) -> None:
    """bf16=True raises if torch denies bf16, as on a machine without a GPU unless use_cpu=True."""
    with pytest.raises(ValueError, match="bf16"):
        arguments(tmp_path, bf16=True, use_cpu=False)
    arguments(tmp_path, bf16=True, use_cpu=True)


@proves("bf16-emulated")
def test_an_old_card_is_said_to_support_bf16_through_emulation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For a card of capability 7.5 is_bf16_supported() is true, without emulation it is false."""
    cuda = torch.cuda
    card = type("Card", (), {"major": 7, "minor": 5})()
    monkeypatch.setattr(cuda, "is_available", lambda: True)
    monkeypatch.setattr(cuda, "current_device", lambda: 0)
    monkeypatch.setattr(cuda, "get_device_properties", lambda _=None: card)
    monkeypatch.setattr(cuda, "_check_bf16_tensor_supported", lambda _: True)
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    check = transformers.utils.import_utils.is_torch_bf16_gpu_available
    assert cuda.is_bf16_supported() is True
    assert cuda.is_bf16_supported(including_emulation=False) is False
    check.cache_clear() if hasattr(check, "cache_clear") else None
    assert check() is True
    check.cache_clear() if hasattr(check, "cache_clear") else None


@proves("prefetch-without-workers")
def test_prefetching_without_workers_is_refused(tmp_path: Path) -> None:
    """dataloader_prefetch_factor with 0 workers raises ValueError, with 2 workers it does not."""
    with pytest.raises(ValueError, match="prefetch_factor"):
        arguments(tmp_path, dataloader_prefetch_factor=2)
    arguments(tmp_path, dataloader_prefetch_factor=2, dataloader_num_workers=2)


BEST = {"load_best_model_at_end": True}


@proves("load-best-mismatch")
@pytest.mark.parametrize(
    "given",
    [
        {"save_strategy": "epoch", "eval_strategy": "steps", "eval_steps": 5},
        {"save_strategy": "steps", "eval_strategy": "steps", "save_steps": 7, "eval_steps": 5},
        {"save_strategy": "steps"},
    ],
)
def test_the_best_model_needs_a_save_at_each_evaluation(
    given: dict[str, Any], tmp_path: Path
) -> None:
    """load_best_model_at_end wants equal strategies, and save_steps a multiple of eval_steps."""
    with pytest.raises(ValueError, match="load_best_model_at_end"):
        arguments(tmp_path, **BEST, **given)


@proves("load-best-mismatch")
@pytest.mark.parametrize(
    "given",
    [
        {"save_strategy": "epoch", "eval_strategy": "epoch", "save_steps": 7, "eval_steps": 5},
        {"save_strategy": "steps", "eval_strategy": "steps", "save_steps": 10, "eval_steps": 5},
        {"save_strategy": "best", "eval_strategy": "epoch", "metric_for_best_model": "loss"},
    ],
)
def test_strategies_that_agree_are_accepted(given: dict[str, Any], tmp_path: Path) -> None:
    """Epoch with epoch needs no common divisor, save_strategy=best no equal strategy."""
    assert arguments(tmp_path, **BEST, **given).load_best_model_at_end


@proves("eval-without-dataset")
def test_evaluation_needs_a_data_set(tmp_path: Path) -> None:
    """Trainer raises ValueError if eval_strategy is set and no eval_dataset is given."""
    with pytest.raises(ValueError, match="eval_dataset"):
        trainer(tmp_path, eval_strategy="steps", eval_steps=1)


@proves("fsdp-not-distributed")
def test_fsdp_needs_several_processes(tmp_path: Path) -> None:
    """With fsdp set and one plain process Trainer raises ValueError."""
    with pytest.raises(ValueError, match="fsdp only works in distributed"):
        trainer(tmp_path, fsdp=True)


@proves("default-batch-8", "eval-batch-default-8", "save-optimizer-disk", "max-grad-norm-zero")
def test_defaults_of_the_batch_and_of_saving(tmp_path: Path) -> None:
    """Both batch sizes default to 8, a checkpoint is written each 500 steps and none removed."""
    made = transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    assert (made.per_device_train_batch_size, made.per_device_eval_batch_size) == (8, 8)
    assert (made.save_strategy, made.save_steps, made.save_total_limit) == ("steps", 500, None)
    assert made.save_only_model is False
    assert made.max_grad_norm == 1.0


@proves("default-batch-8", "eval-batch-default-8")
@pytest.mark.parametrize("name", ["SFTConfig", "DPOConfig", "RewardConfig", "GRPOConfig"])
def test_the_batch_defaults_of_trl(name: str, tmp_path: Path) -> None:
    """The TRL configs keep 8 as the batch per device, for training and for evaluation."""
    made = getattr(trl, name)(output_dir=str(tmp_path), use_cpu=True)
    assert (made.per_device_train_batch_size, made.per_device_eval_batch_size) == (8, 8)


@proves("eval-batch-default-8")
def test_the_evaluation_batch_does_not_follow_the_training_batch(tmp_path: Path) -> None:
    """With per_device_train_batch_size=1 the evaluation loader still takes 8 samples."""
    rows = [{"input_ids": [4, 5], "labels": [4, 5]}] * 16
    made = trainer(tmp_path, per_device_train_batch_size=1, given={"eval_dataset": rows})
    assert len(next(iter(made.get_train_dataloader()))["input_ids"]) == 1
    assert len(next(iter(made.get_eval_dataloader()))["input_ids"]) == 8


@proves("auto-find-batch")
def test_the_batch_shrinks_by_a_tenth_and_accumulation_stays() -> None:
    """After each out-of-memory error find_executable_batch_size multiplies the batch by 0.9."""
    from accelerate.utils import find_executable_batch_size

    tried: list[int] = []

    @find_executable_batch_size(starting_batch_size=100)
    def run(batch: int) -> None:
        tried.append(batch)
        if len(tried) < 3:
            raise RuntimeError("CUDA out of memory.")

    run()
    assert tried == [100, 90, 81]


@proves("auto-find-batch")
def test_grpo_refuses_to_find_a_batch(tmp_path: Path) -> None:
    """GRPOTrainer does not take auto_find_batch_size=True."""
    with pytest.raises((ValueError, NotImplementedError), match="auto_find_batch_size"):
        trl.GRPOTrainer(
            model=llama(),
            args=trl.GRPOConfig(output_dir=str(tmp_path), use_cpu=True, auto_find_batch_size=True),
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            train_dataset=[{"prompt": "a"}],
        )
