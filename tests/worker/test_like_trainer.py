"""The loop of the runner against transformers' own Trainer, both on the host.

The host also holds the data set, of which Trainer reads one batch ahead: its peaks are higher by
the same few batches in every part of a step, and by nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from oomdoctor.model.job import EvalSpec, Job, OptimizerSpec
from oomdoctor.record import replace
from oomdoctor.worker.run.bench import Bench
from oomdoctor.worker.run.loading import load
from oomdoctor.worker.run.recipe import recipe_of
from oomdoctor.worker.run.strategy import Single
from tests.worker.jobs import BART, BERT, JOB, LORA, RESNET, T5, VIT
from tests.worker.ledger import Ledger, Watching

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROW_BATCH = 3 * 8 * 2 * 32  # tokens, mask and labels of a batch
EVALUATION = EvalSpec(batch=2, seq_len=32, batches=3, keeps_outputs=True)
JOBS = {
    "plain": JOB,
    "accumulation under autocast": replace(JOB, grad_accum=3, amp="bf16", padded=True),
    "adapter on bf16": replace(JOB, lora=LORA, dtype="bf16"),
    "checkpointing": replace(JOB, lora=LORA, checkpointing="reentrant"),
    "no clipping": replace(JOB, clip_norm=None, checkpointing="non-reentrant"),
    "adafactor": replace(JOB, optimizer=OptimizerSpec(name="adafactor")),
    "evaluation": replace(JOB, evaluation=EVALUATION),
    "evaluation of losses": replace(JOB, evaluation=replace(EVALUATION, keeps_outputs=False)),
    "classes of texts": replace(JOB, task="classification", model=BERT, labels=3, padded=True),
    "a decoder's classes": replace(JOB, task="classification", labels=3, lora=LORA),
    "masked words": replace(JOB, task="masked-lm", model=BERT, evaluation=EVALUATION),
    "translation": replace(JOB, task="seq2seq", model=T5, target_len=16, amp="bf16"),
    "summaries": replace(JOB, task="seq2seq", model=BART, target_len=16),
    "pictures": replace(JOB, task="image-classification", model=VIT, labels=10),
    "convolutions": replace(JOB, task="image-classification", model=RESNET, labels=10),
}


class Data(torch.utils.data.Dataset):
    """Rows of the batch that the runner makes, each padded if any is: Trainer shuffles them."""

    def __init__(self, job: Job, batches: int) -> None:
        """Take the rows of a job's batch, for as many batches."""
        self.padded = job.padded
        self.batch = recipe_of(job).batch(job, rows=job.batch, length=job.seq_len)
        self.rows = job.batch
        self.batches = batches

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self.rows * self.batches

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        """Return a row."""
        row = -1 if self.padded else index % self.rows
        return {name: value[row] for name, value in self.batch.items()}


class Marks(TrainerCallback):
    """Notes the peak up to the gradients' norm, that of the optimizer, and that of evaluation."""

    def __init__(self, ledger: Ledger) -> None:
        """Read the peaks from a ledger."""
        self.ledger = ledger
        self.peaks: dict[str, list[int]] = {"gradients": [], "optimizer": [], "evaluation": []}

    def _note(self, name: str) -> None:
        self.peaks[name].append(self.ledger.peak)
        self.ledger.reset()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.ledger.reset()

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        self._note("gradients")

    def on_optimizer_step(self, *_: Any, **__: Any) -> None:
        self._note("optimizer")

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.ledger.reset()

    def on_evaluate(self, *_: Any, **__: Any) -> None:
        self._note("evaluation")


def arguments(job: Job, folder: Path) -> TrainingArguments:
    assert job.optimizer is not None
    evaluation = job.evaluation
    kind = {"use_reentrant": job.checkpointing == "reentrant"}
    return TrainingArguments(
        output_dir=str(folder),
        max_steps=2,
        per_device_train_batch_size=job.batch,
        gradient_accumulation_steps=job.grad_accum,
        optim={"adamw": "adamw_torch", "adafactor": "adafactor"}[job.optimizer.name],
        bf16=job.amp == "bf16",
        max_grad_norm=job.clip_norm or 0.0,
        gradient_checkpointing=job.checkpointing is not None,
        gradient_checkpointing_kwargs=kind if job.checkpointing else None,
        eval_strategy="steps" if evaluation else "no",
        eval_steps=2,
        per_device_eval_batch_size=evaluation.batch if evaluation else 8,
        prediction_loss_only=bool(evaluation and not evaluation.keeps_outputs),
        label_names=["labels"],
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        logging_steps=1000,
    )


def trainer_peaks(job: Job, folder: Path) -> dict[str, list[int]]:
    ledger = Ledger()
    with ledger:
        bench = Bench(
            job,
            torch.device("cpu"),
            Watching(ledger),
            recipe=recipe_of(job),
            strategy=Single(),
        )
        load(bench)
        marks = Marks(ledger)
        keeps = job.evaluation is not None and job.evaluation.keeps_outputs
        trainer = Trainer(
            model=bench.model,
            args=arguments(job, folder),
            train_dataset=Data(job, 2 * job.grad_accum),
            eval_dataset=Data(job, job.evaluation.batches) if job.evaluation else None,
            callbacks=[marks],
            compute_metrics=(lambda _: {}) if keeps else None,
        )
        trainer.train()
    return marks.peaks


def batch_bytes(job: Job) -> int:
    return sum(one.nbytes for one in Data(job, 1).batch.values())


def runner_peaks(peaks: dict[str, int]) -> dict[str, list[int]]:
    def highest(phase: str, *parts: str) -> int:
        return max(
            (value for place, value in peaks.items() if place in {f"{phase}/{p}" for p in parts}),
            default=0,
        )

    steps = ("step 1", "step 2")
    evaluation = [value for place, value in peaks.items() if place.startswith("evaluation")]
    return {
        "gradients": [highest(step, "forward", "loss", "backward", "clip") for step in steps],
        "optimizer": [highest(step, "optimizer") for step in steps],
        "evaluation": [max(evaluation)] if evaluation else [],
    }


@pytest.mark.parametrize("name", JOBS)
def test_every_part_of_a_step_has_the_peak_that_trainer_has(
    run: Callable[[Job], Watching], tmp_path: Path, name: str
) -> None:
    job = JOBS[name]

    ours = runner_peaks(run(job).peaks)
    theirs = trainer_peaks(job, tmp_path)

    assert {part: len(values) for part, values in ours.items()} == {
        part: len(values) for part, values in theirs.items()
    }
    for part, values in ours.items():
        for mine, real in zip(values, theirs[part], strict=True):
            assert real - mine in range(4 * max(ROW_BATCH, batch_bytes(job))), part
