"""The job out of a book of facts: what configs and flags say, and what frameworks do otherwise.

    facts of axolotl.yaml + --gpu "RTX 4090"  ->  JobReading(job, assumptions, missing)

What nobody stated is filled in from the frameworks' defaults, each choice a sentence among the
assumptions. What cannot be guessed (the model, over how many cards it is sharded) is missing, and
then there is no job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory import jobs_method, jobs_model, jobs_run, jobs_task
from oomdoctor.memory.jobs_book import Said
from oomdoctor.model.job import FULL, TRAINING, Job
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook
    from oomdoctor.facts.derivation import Derivation
    from oomdoctor.model.job import ModelSpec

CLASSIFIED = ("classification", "token-classification", "image-classification", "reward")
"""Tasks with a head of a few outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReading:
    """The job, or what is missing for one; `assumptions` are sentences on what nobody stated."""

    job: Job | None
    assumptions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def job_of(book: FactBook) -> JobReading:
    """Describe the job of a book; its defaults and derived facts are added first."""
    return job_of_completed(completed(book))


def job_of_completed(book: FactBook, *, supposes: bool = False) -> JobReading:
    """Describe the job of a book that already holds its defaults and derived facts.

    With `supposes` a network of nearly that name and a single card stand in where others are not
    known.
    """
    said = Said(book, supposes=supposes)
    model = jobs_model.model_of(said)
    job = None if model is None or said.missing else _job(said, model)
    missing = said.missing
    return JobReading(job=None if missing else job, assumptions=said.assumptions, missing=missing)


def completed(book: FactBook) -> FactBook:
    """Return the book with pinned versions, defaults, and all that follows from them."""
    from oomdoctor.facts import derive, derive_lint
    from oomdoctor.facts.arguments import arguments
    from oomdoctor.facts.defaults import assumed
    from oomdoctor.facts.derivation import apply
    from oomdoctor.facts.pins import pinned

    book = book.add(pinned(book))
    book = derive.derive(book.add(assumed(book)))
    return derive_lint.derive(apply(book.add(arguments(book)), _steps()))


def _steps() -> tuple[Derivation, ...]:
    from oomdoctor.facts import (
        derive_lint_dist,
        derive_lint_loss,
        derive_lint_memory,
        derive_lint_precision,
        derive_lint_setup,
        derive_lint_training,
    )

    return (
        *derive_lint_memory.STEPS,
        *derive_lint_loss.STEPS,
        *derive_lint_setup.STEPS,
        *derive_lint_precision.STEPS,
        *derive_lint_training.STEPS,
        *derive_lint_dist.STEPS,
    )


def _job(said: Said, model: ModelSpec) -> Job:
    task = jobs_task.task_of(said, model)
    quant = jobs_method.quant_of(said)
    lora = jobs_method.lora_of(said, model, quant)
    trains = task in TRAINING
    batch, length = jobs_run.batch_of(said), jobs_run.length_of(said, model)
    amp = jobs_run.autocast_of(said) if trains else None
    if trains and said.flag("train.frozen_layers"):
        said.lack("which parameters are trained: training of some layers alone is not described")
    made = Job(
        model=model,
        task=task,
        method=_method(adapter=lora is not None, quantised=quant is not None),
        dtype=jobs_run.dtype_of(said) if quant is None else _rest_dtype(said, quant.compute_dtype),
        amp=amp,
        scaler=amp == "fp16",
        batch=batch,
        seq_len=length,
        target_len=_target(said, task, length),
        grad_accum=jobs_run.accumulation_of(said),
        checkpointing=jobs_run.checkpointing_of(said) if trains else None,
        attention=jobs_run.attention_of(said, model),
        padded=said.text("train.padding") == "max_length" and not said.flag("train.packing"),
        loss=jobs_run.loss_of(said, task),
        loss_chunk=said.count("loss.chunk"),
        lora=lora,
        quant=quant,
        optimizer=jobs_method.optimizer_of(said) if trains else None,
        clip_norm=jobs_run.clip_of(said) if trains else None,
        ema=bool(said.flag("train.ema")),
        sharding=jobs_run.sharding_of(said),
        evaluation=jobs_task.evaluation_of(said, task, batch, length),
        generation=jobs_task.generation_of(said, task, batch, length),
        saves=trains and said.text("save.strategy") not in (None, "no"),
        merges=said.text("job.task") == "merge",
        resumes=bool(said.flag("resume.on")),
        reference=jobs_task.reference_of(said, task, adapter=lora is not None),
        engine_share=jobs_task.engine_share_of(said, task),
        compiled=bool(said.flag("compile.on")),
        image_size=jobs_run.image_of(said, model, task),
        labels=_labels(said, model, task),
        offloads_activations=bool(said.flag("train.offloads_activations")),
        framework=jobs_task.framework_of(said, task),
        versions=jobs_run.versions_of(said),
    )
    jobs_method.tell_unpacked(said, made)
    return made


def _method(*, adapter: bool, quantised: bool) -> str:
    if not adapter:
        return FULL
    return "qlora" if quantised else "lora"


def _rest_dtype(said: Said, compute: str) -> str:
    """Return the dtype of what is not quantised: stated, else that of the products."""
    stated = said.text("load.dtype")
    return stated if stated in ("fp32", "bf16", "fp16") else compute


def _target(said: Said, task: str, length: int) -> int | None:
    if task != "seq2seq":
        return None
    found = said.count("train.target_len")
    if found is None:
        said.assume(f"targets as long as rows, {length:,} tokens (no length is given)")
        return length
    return found


def _labels(said: Said, model: ModelSpec, task: str) -> int | None:
    if task not in CLASSIFIED:
        return None
    if task == "reward":
        return 1
    found = said.count("model.labels") or model.config.get("num_labels")
    if isinstance(found, int):
        return found
    said.assume("two labels (none are given)")
    return 2
