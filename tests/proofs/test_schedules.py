"""Learning-rate schedules, clipping, batches and the order of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import arguments, llama, rows, tokenizer, trainer

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
accelerate = pytest.importorskip("accelerate")
trl = pytest.importorskip("trl")


def rates(name: str, steps: int = 20) -> list[float]:
    """Return the learning rates of a schedule with 10 steps of warm-up."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    schedule = transformers.get_scheduler(
        name, optimizer, num_warmup_steps=10, num_training_steps=steps
    )
    found = []
    for _ in range(steps):
        found.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return found


@proves("constant-scheduler-ignores-warmup")
def test_the_constant_schedule_has_no_warm_up() -> None:
    """With "constant" the first rate is the full one although 10 warm-up steps were asked for."""
    assert rates("constant")[:11] == [1.0] * 11
    assert rates("constant_with_warmup")[:3] == pytest.approx([0.0, 0.1, 0.2])


@proves("constant-scheduler")
def test_the_constant_schedule_does_not_decay() -> None:
    """With "constant" the last rate is the first one; linear and cosine end near zero."""
    assert rates("constant")[-1] == 1.0
    assert rates("linear")[-1] < 0.2
    assert rates("cosine")[-1] < 0.2


@proves("max-grad-norm-zero")
@pytest.mark.parametrize(("limit", "used"), [(1.0, [1.0]), (0, [float("inf")])])
def test_zero_disables_clipping(
    limit: float, used: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With max_grad_norm=0 the norm is measured and nothing clipped: the limit is infinite."""
    clipped: list[float] = []
    clip = accelerate.Accelerator.clip_grad_norm_

    def counting(self: Any, parameters: Any, norm: float, **given: Any) -> Any:
        clipped.append(norm)
        return clip(self, parameters, norm, **given)

    monkeypatch.setattr(accelerate.Accelerator, "clip_grad_norm_", counting)
    trainer(tmp_path, max_grad_norm=limit).train()
    assert clipped == used


@proves("max-grad-norm-zero", "max-grad-norm-null")
def test_a_missing_limit_is_no_way_to_disable_clipping(tmp_path: Path) -> None:
    """max_grad_norm=None fails at the first step with TypeError: 0 is what disables clipping."""
    with pytest.raises(TypeError, match="NoneType"):
        trainer(tmp_path, max_grad_norm=None).train()


@proves("dataparallel-implicit")
def test_one_process_with_several_gpus_multiplies_the_batch(tmp_path: Path) -> None:
    """In one process train_batch_size is per_device_train_batch_size times the visible GPUs."""
    made = arguments(tmp_path, per_device_train_batch_size=2)
    made._n_gpu = 4
    assert made.train_batch_size == 8
    wrapped = transformers.Trainer(model=llama(), args=made, train_dataset=rows(16))
    assert len(next(iter(wrapped.get_train_dataloader()))["input_ids"]) == 8


@proves("dataparallel-implicit")
def test_one_process_with_several_gpus_is_wrapped_in_data_parallel(tmp_path: Path) -> None:
    """With n_gpu > 1 and a model on one device Trainer wraps it in nn.DataParallel."""
    made = trainer(tmp_path)
    assert made._wrap_model(made.model) is made.model
    made.args._n_gpu = 4
    assert isinstance(made._wrap_model(made.model), torch.nn.DataParallel)


@proves("naive-pipeline-throughput")
def test_a_model_spread_over_devices_is_one_worker(tmp_path: Path) -> None:
    """A device map of several devices makes Trainer run one process without data parallel."""
    model = llama()
    model.hf_device_map = {"model": 0, "lm_head": 1}
    args = arguments(tmp_path)
    args._n_gpu = 2
    made = transformers.Trainer(model=model, args=args)
    assert made.is_model_parallel is True
    assert made.args.n_gpu == 1


@proves("effective-batch")
def test_a_step_takes_batch_times_accumulation_samples(tmp_path: Path) -> None:
    """One optimizer step sees per-device batch times gradient_accumulation_steps samples."""
    made = trainer(
        tmp_path,
        given={"train_dataset": rows(16)},
        max_steps=-1,
        num_train_epochs=1,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=4,
    )
    made.train()
    assert made.state.global_step == 16 // (2 * 4)


@proves("group-by-length-peak", "dry-run-missing")
def test_grouping_by_length_puts_the_longest_sample_first() -> None:
    """group_by_length brings the longest sample into the first batch: the peak stays."""
    lengths = [5, 9, 30, 7, 100, 3, 8, 12, 40, 2]
    sampler = transformers.trainer_pt_utils.LengthGroupedSampler(2, lengths=lengths)
    order = list(sampler)
    assert lengths[order[0]] == max(lengths)
    assert sorted(order) == list(range(len(lengths)))


@proves("tokenizer-not-saved")
def test_a_checkpoint_has_a_tokenizer_if_the_trainer_was_given_one(tmp_path: Path) -> None:
    """Only Trainer(processing_class=tokenizer) writes the tokenizer beside the model."""
    for name, given in (("without", {}), ("with", {"processing_class": tokenizer()})):
        trainer(tmp_path, given=given).save_model(str(tmp_path / name))
    files = [(tmp_path / name / "tokenizer.json").exists() for name in ("without", "with")]
    assert files == [False, True]


@proves("save-oom-save-on-each-node")
@pytest.mark.parametrize(("each", "writes"), [(False, False), (True, True)])
def test_save_on_each_node_decides_who_writes(
    *, each: bool, writes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """save_on_each_node, off by default, lets the first process of another node write."""
    assert arguments(tmp_path).save_on_each_node is False
    made = arguments(tmp_path, save_on_each_node=each)
    kind = type(made)
    monkeypatch.setattr(kind, "process_index", property(lambda _: 8))
    monkeypatch.setattr(kind, "local_process_index", property(lambda _: 0))
    assert made.should_save is writes


@proves("cp-tp-effective-batch")
def test_tensor_parallel_ranks_share_their_samples() -> None:
    """Of 8 ranks with tp 4 two read different samples, and beside tp they have to be sharded."""
    with pytest.raises(ValueError, match="pure data parallelism"):
        accelerate.ParallelismConfig(tp_size=4, dp_replicate_size=2)
    plan = accelerate.ParallelismConfig(tp_size=4, dp_shard_size=2)
    assert plan.total_size == 8
    assert plan.data_parallel_size == 2
    assert plan.non_data_parallel_size == 4


@proves("empty-cache-steps")
def test_the_cache_is_emptied_each_n_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch_empty_cache_steps=2 empties the cache in every second step; 0 is refused."""
    emptied: list[int] = []
    made = trainer(tmp_path, max_steps=4, torch_empty_cache_steps=2)
    module = transformers.trainer
    monkeypatch.setattr(
        module, "clear_device_cache", lambda: emptied.append(made.state.global_step)
    )
    made.train()
    assert emptied == [0, 2]
    with pytest.raises(ValueError, match="torch_empty_cache_steps"):
        arguments(tmp_path, torch_empty_cache_steps=0)
