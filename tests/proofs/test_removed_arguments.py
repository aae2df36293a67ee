"""Arguments that this transformers refuses, renames or ignores."""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import arguments, trainer

if TYPE_CHECKING:
    from pathlib import Path

transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")
accelerate = pytest.importorskip("accelerate")

REMOVED = (
    *("per_gpu_train_batch_size", "per_gpu_eval_batch_size", "no_cuda", "use_mps_device"),
    *("adafactor", "overwrite_output_dir", "save_safetensors", "half_precision_backend"),
    *("include_inputs_for_metrics", "include_tokens_per_second", "jit_mode_eval", "torchdynamo"),
    *("past_index", "tpu_num_cores", "fp16_backend", "fp16_opt_level", "mp_parameters"),
    *("ray_scope", "logging_dir", "sharded_ddp"),
)


def refusal(name: str, folder: Path) -> str:
    with pytest.raises(TypeError) as error:
        arguments(folder, **{name: 1})
    return str(error.value)


@proves("evaluation-strategy-removed")
def test_evaluation_strategy_is_refused(tmp_path: Path) -> None:
    """TrainingArguments(evaluation_strategy=...) raises TypeError, eval_strategy is taken."""
    assert "evaluation_strategy" in refusal("evaluation_strategy", tmp_path)
    assert arguments(tmp_path, eval_strategy="steps").eval_strategy == "steps"


@proves("warmup-ratio-removed")
def test_warmup_ratio_is_refused_and_warmup_steps_takes_the_ratio(tmp_path: Path) -> None:
    """warmup_ratio raises TypeError, and a warmup_steps below 1 is that share of the steps."""
    assert "warmup_ratio" in refusal("warmup_ratio", tmp_path)
    assert arguments(tmp_path, warmup_steps=0.03).get_warmup_steps(1000) == 30


@proves("group-by-length-removed")
def test_group_by_length_is_refused(tmp_path: Path) -> None:
    """group_by_length raises TypeError, train_sampling_strategy has taken its place."""
    assert "group_by_length" in refusal("group_by_length", tmp_path)
    made = arguments(tmp_path, train_sampling_strategy="group_by_length")
    assert made.train_sampling_strategy == "group_by_length"


@proves("removed-v5-args")
@pytest.mark.parametrize("name", REMOVED)
def test_an_argument_removed_with_version_5_is_refused(name: str, tmp_path: Path) -> None:
    """Each of the 20 arguments that version 5 dropped raises TypeError."""
    assert name in refusal(name, tmp_path)


@proves("logging-dir-removed")
def test_logging_dir_is_refused(tmp_path: Path) -> None:
    """TrainingArguments(logging_dir=...) raises TypeError."""
    assert "logging_dir" in refusal("logging_dir", tmp_path)


@proves("fp16-opt-level-dead", "removed-v5-args")
@pytest.mark.parametrize("name", ["fp16_opt_level", "half_precision_backend"])
def test_the_apex_arguments_are_gone(name: str, tmp_path: Path) -> None:
    """fp16_opt_level and half_precision_backend raise TypeError, and no Apex code is left."""
    assert name in refusal(name, tmp_path)
    assert "apex" not in inspect.getsource(transformers.Trainer).lower()


@proves("removed-v5-args", "group-by-length-removed", "evaluation-strategy-removed")
def test_a_config_file_with_a_removed_key_gives_a_value_error(tmp_path: Path) -> None:
    """From a file or a dict, HfArgumentParser names unused keys in a ValueError, no TypeError."""
    parser = transformers.HfArgumentParser(transformers.TrainingArguments)
    with pytest.raises(ValueError, match="group_by_length"):
        parser.parse_dict({"output_dir": str(tmp_path), "group_by_length": True})


@proves("gradient-checkpointing-renamed")
def test_gradient_checkpointing_is_an_alias(tmp_path: Path) -> None:
    """gradient_checkpointing=True still turns activation_checkpointing on; the new name wins."""
    assert arguments(tmp_path, gradient_checkpointing=True).activation_checkpointing is True
    both = arguments(tmp_path, gradient_checkpointing=True, activation_checkpointing=False)
    assert both.activation_checkpointing is False


@proves("gradient-checkpointing-renamed")
def test_gradient_checkpointing_is_called_deprecated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old name is announced as deprecated, to go in version 6."""
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    with pytest.warns(FutureWarning) as seen:
        arguments(tmp_path, gradient_checkpointing=True)
    said = " ".join([caplog.text, *(str(one.message) for one in seen)])
    assert "activation_checkpointing" in said


@proves("report-to-null")
def test_report_to_none_is_refused_by_the_trainer(tmp_path: Path) -> None:
    """report_to=None (YAML null) makes Trainer raise, report_to="none" does not."""
    with pytest.raises(ValueError, match="None is not supported"):
        trainer(tmp_path, report_to=None)
    trainer(tmp_path, report_to="none")


@proves("report-to-default")
def test_nothing_is_reported_unless_asked_for(tmp_path: Path) -> None:
    """Without report_to no integration is used, however many are installed."""
    assert transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True).report_to == []


@proves("fsdp-string-deprecated")
def test_the_string_form_of_fsdp_is_deprecated_but_parsed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fsdp="full_shard auto_wrap" is still read in this version, with a deprecation warning."""
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    assert arguments(tmp_path, fsdp="full_shard auto_wrap").fsdp
    assert "`fsdp` as a string is deprecated" in caplog.text
    caplog.clear()
    assert arguments(tmp_path, fsdp=True).fsdp
    assert "deprecated" not in caplog.text


@proves("fsdp1-deprecated")
@pytest.mark.parametrize(("version", "warned"), [(1, True), (2, False)])
def test_version_1_of_fsdp_is_deprecated(
    version: int,
    *,
    warned: bool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """fsdp_config.version 1 is still taken, with a deprecation warning; version 2 without one."""
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    arguments(tmp_path, fsdp=True, fsdp_config={"version": version})
    assert ("FSDP1" in caplog.text and "deprecated" in caplog.text) is warned


@proves("optim-args-offload-fake")
@pytest.mark.parametrize("text", ["offload", "beta1=0.9,", "a=b=c"])
def test_optim_args_are_pairs(text: str, tmp_path: Path) -> None:
    """optim_args="offload" passes TrainingArguments and fails when the optimizer is built."""
    made = trainer(tmp_path, optim="adamw_torch", optim_args=text)
    with pytest.raises(ValueError, match="unpack"):
        made.create_optimizer()


@proves("optim-args-offload-fake")
def test_optim_args_of_pairs_are_read(tmp_path: Path) -> None:
    """optim_args="beta1=0.8" is accepted by the Trainer."""
    made = trainer(tmp_path, optim="adamw_torch", optim_args="betas=0.8")
    assert made.args.optim_args == "betas=0.8"


@proves("accelerator-cpu-offload-fake")
def test_the_accelerator_has_no_cpu_offload() -> None:
    """Accelerator(cpu_offload=True) raises TypeError; the FSDP plugin has that argument."""
    with pytest.raises(TypeError, match="cpu_offload"):
        accelerate.Accelerator(cpu_offload=True)
    plugin = inspect.signature(accelerate.FullyShardedDataParallelPlugin)
    assert "cpu_offload" in plugin.parameters


@proves("constant-length-dataset-gone")
@pytest.mark.parametrize("name", ["ConstantLengthDataset", "DataCollatorForCompletionOnlyLM"])
def test_the_packing_classes_are_gone(name: str) -> None:
    """TRL has neither ConstantLengthDataset nor DataCollatorForCompletionOnlyLM any more."""
    import trl.trainer

    assert not hasattr(trl, name)
    assert not hasattr(trl.trainer, name)


@proves("constant-length-dataset-gone")
@pytest.mark.parametrize(
    "name", ["max_seq_length", "dataset_batch_size", "num_of_sequences", "chars_per_token"]
)
def test_the_arguments_of_the_packing_classes_are_refused(name: str, tmp_path: Path) -> None:
    """SFTConfig refuses max_seq_length, dataset_batch_size, num_of_sequences, chars_per_token."""
    with pytest.raises(TypeError, match=name):
        trl.SFTConfig(output_dir=str(tmp_path), use_cpu=True, **{name: 8})


@proves("fsdp1-deprecated")
def test_fsdp1_is_announced_to_go(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fsdp_config version 1 is still taken, with a warning; version 2 without."""
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    assert arguments(tmp_path, fsdp=True, fsdp_config={"version": 1}).fsdp
    assert "FSDP1" in caplog.text
    caplog.clear()
    assert arguments(tmp_path, fsdp=True, fsdp_config={"version": 2}).fsdp
    assert "FSDP1" not in caplog.text
