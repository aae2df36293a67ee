"""Changes of a job that take away one reason for its peak: what a treated trial runs.

Each returns None where the change is already in force, or where the job has nothing to change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from oomdoctor.model.job import EvalSpec, OptimizerSpec
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.model.job import Job

    Change: TypeAlias = Callable[[Job], "Job | None"]

_CHUNK = 1024
_SIXTEEN_BIT = ("bf16", "fp16")


def half_rows(job: Job) -> Job | None:
    """Halve the rows of a micro-step, and take twice as many micro-steps."""
    if job.batch < 2:
        return None
    half = job.batch // 2
    return replace(job, batch=half, grad_accum=job.grad_accum * 2)


def half_length(job: Job) -> Job | None:
    """Halve the longest row."""
    return None if job.seq_len < 2 else replace(job, seq_len=job.seq_len // 2)


def checkpointed(job: Job) -> Job | None:
    """Recompute activations in backward."""
    if job.checkpointing is not None or not job.trains:
        return None
    return replace(job, checkpointing="non-reentrant")


def not_reentrant(job: Job) -> Job | None:
    """Checkpoint by hooks, which frozen inputs do not switch off."""
    return replace(job, checkpointing="non-reentrant") if job.checkpointing == "reentrant" else None


def fused_attention(job: Job) -> Job | None:
    """Compute attention without the matrix of scores."""
    return replace(job, attention="sdpa") if job.attention == "eager" else None


def chunked_loss(job: Job) -> Job | None:
    """Compute the loss in chunks, so that the logits never exist as a whole."""
    if job.loss != "full-logits":
        return None
    return replace(job, loss="chunked", loss_chunk=_CHUNK)


def moved_outputs(job: Job) -> Job | None:
    """Move what evaluation keeps to the host after every batch."""
    spec = job.evaluation
    if spec is None or not spec.keeps_outputs or spec.accumulation == 1:
        return None
    return replace(job, evaluation=replace(spec, accumulation=1))


def fewer_evaluated_rows(job: Job) -> Job | None:
    """Evaluate one row at a time."""
    spec = job.evaluation
    if spec is None or spec.batch < 2:
        return None
    return replace(job, evaluation=replace(spec, batch=1))


def losses_alone(job: Job) -> Job | None:
    """Keep no logits in evaluation."""
    spec = job.evaluation
    if spec is None or not spec.keeps_outputs:
        return None
    return replace(job, evaluation=EvalSpec(batch=spec.batch, seq_len=spec.seq_len))


def stateless_optimizer(job: Job) -> Job | None:
    """Step without states, which shows what they weigh; not a setting to train with."""
    if job.optimizer is None or job.optimizer.name == "sgd":
        return None
    return replace(job, optimizer=OptimizerSpec(name="sgd", implementation="foreach"))


def eight_bit_optimizer(job: Job) -> Job | None:
    """Keep the states of Adam in 8 bit."""
    if job.optimizer is None or job.optimizer.name not in ("adam", "adamw"):
        return None
    return replace(job, optimizer=OptimizerSpec(name="adamw-8bit"))


def sixteen_bit(job: Job) -> Job | None:
    """Load the weights in bf16."""
    return replace(job, dtype="bf16") if job.dtype not in _SIXTEEN_BIT else None


def unprepared(job: Job) -> Job | None:
    """Leave out the casts to fp32 of a quantised base."""
    if job.quant is None or not job.quant.prepared:
        return None
    return replace(job, quant=replace(job.quant, prepared=False))


def adapter_alone(job: Job) -> Job | None:
    """Train the adapter without whole modules beside it."""
    if job.lora is None or not job.lora.modules_to_save:
        return None
    return replace(job, lora=replace(job.lora, modules_to_save=()))


def shared_reference(job: Job) -> Job | None:
    """Take the base under the adapter as the reference, without a second model."""
    if job.reference != "separate" or job.lora is None:
        return None
    return replace(job, reference="adapter-off")


def without_average(job: Job) -> Job | None:
    """Keep no averaged weights."""
    return replace(job, ema=False) if job.ema else None


def smaller_images(job: Job) -> Job | None:
    """Halve the side of an image."""
    if job.image_size is None or job.image_size < 2:
        return None
    return replace(job, image_size=job.image_size // 2)


def fewer_answers(job: Job) -> Job | None:
    """Generate half as many answers at once."""
    spec = job.generation
    if spec is None:
        return None
    if spec.beams > 1:
        return replace(job, generation=replace(spec, beams=1))
    return replace(job, generation=replace(spec, batch=spec.batch // 2)) if spec.batch > 1 else None


def fewer_new_tokens(job: Job) -> Job | None:
    """Generate half as many tokens."""
    spec = job.generation
    if spec is None or spec.new_tokens < 2:
        return None
    return replace(job, generation=replace(spec, new_tokens=spec.new_tokens // 2))


def plain_adapter(job: Job) -> Job | None:
    """Train LoRA without the magnitudes of DoRA."""
    if job.lora is None or not job.lora.dora:
        return None
    return replace(job, lora=replace(job.lora, dora=False))


def one_micro_step(job: Job) -> Job | None:
    """Exchange gradients after every micro-step: nothing is accumulated unsharded."""
    return replace(job, grad_accum=1) if job.grad_accum > 1 else None


JOB_CHANGES: Mapping[str, Change] = {
    "half-rows": half_rows,
    "half-length": half_length,
    "checkpointed": checkpointed,
    "not-reentrant": not_reentrant,
    "fused-attention": fused_attention,
    "chunked-loss": chunked_loss,
    "moved-outputs": moved_outputs,
    "fewer-evaluated-rows": fewer_evaluated_rows,
    "losses-alone": losses_alone,
    "stateless-optimizer": stateless_optimizer,
    "eight-bit-optimizer": eight_bit_optimizer,
    "sixteen-bit": sixteen_bit,
    "unprepared": unprepared,
    "adapter-alone": adapter_alone,
    "shared-reference": shared_reference,
    "without-average": without_average,
    "smaller-images": smaller_images,
    "fewer-answers": fewer_answers,
    "fewer-new-tokens": fewer_new_tokens,
    "plain-adapter": plain_adapter,
    "one-micro-step": one_micro_step,
}
