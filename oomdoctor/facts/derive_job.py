"""Derived facts of the job: tokens of a step, what is trained, what ranks share."""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives
from oomdoctor.facts.derive_run import TRAINING_TASKS

PAIR_TASKS = frozenset(("dpo", "reward"))
SHARD_PARAMS = frozenset(("fsdp1", "fsdp2", "zero3"))
SHARD_OPTIMIZER = SHARD_PARAMS | {"zero1", "zero2"}
SPLIT_MODEL = frozenset(("tensor", "pipeline"))
IN_PLACE = SHARD_OPTIMIZER - SHARD_PARAMS
FULL_SHARE = 0.99


@derives("train.tokens", reads=("train.micro_batch", "train.seq_len", "job.task"))
def tokens(facts: Inputs) -> Outcome:
    """Rows x tokens per row; a preference pair is two rows of one forward pass."""
    count = facts.whole("train.micro_batch") * facts.whole("train.seq_len")
    if facts.maybe_text("job.task") in PAIR_TASKS:
        return Outcome(2 * count, "2 (chosen and rejected) x rows x tokens per row")
    return Outcome(count, "rows x tokens per row")


@derives("dist.world_size", reads=("gpu.count", "job.launcher"))
def world_size(facts: Inputs) -> Outcome | None:
    """One rank per visible card under a launcher; a single visible card is a single rank."""
    cards = facts.whole("gpu.count")
    launched = (facts.maybe_text("job.launcher") or "python") != "python"
    if cards == 1 or (cards > 1 and launched):
        return Outcome(cards, "one rank per visible card", guess=cards > 1)
    return None


@derives("dist.kind", reads=("dist.world_size",))
def kind(facts: Inputs) -> Outcome | None:
    """A single rank shares nothing."""
    return Outcome("none", "a single rank") if facts.whole("dist.world_size") == 1 else None


def _shards(facts: Inputs, kinds: frozenset[str]) -> Outcome | None:
    """Say whether the distribution shards; over one rank nothing is sharded."""
    how = facts.text("dist.kind")
    if how in SPLIT_MODEL:
        return Outcome(value=True, source=f"{how} parallelism splits the model")
    if how not in kinds:
        return Outcome(value=False, source=f"{how} does not shard them")
    ranks = facts.maybe_int("dist.world_size")
    if ranks is None:
        return None
    return Outcome(value=ranks > 1, source=f"{how} over {ranks} ranks")


def params_leave(facts: Inputs) -> bool:
    """Say whether parameters live off the card; ZeRO reads offload_param at stage 3 alone."""
    asked = (facts.maybe_text("dist.param_offload") or "none") != "none"
    return asked and facts.maybe_text("dist.kind") not in IN_PLACE


@derives("dist.shards_params", reads=("dist.kind", "dist.world_size"))
def shards_params(facts: Inputs) -> Outcome | None:
    """FSDP and ZeRO-3 over more than one rank."""
    return _shards(facts, SHARD_PARAMS)


@derives("dist.shards_optimizer", reads=("dist.kind", "dist.world_size"))
def shards_optimizer(facts: Inputs) -> Outcome | None:
    """FSDP and ZeRO-1, 2, 3 over more than one rank."""
    return _shards(facts, SHARD_OPTIMIZER)


@derives(
    "train.global_batch",
    reads=(
        "train.micro_batch",
        "train.grad_accum",
        "dist.world_size",
        "dist.kind",
        "dist.model_ranks",
        "job.framework",
    ),
)
def global_batch(facts: Inputs) -> Outcome | None:
    """Rows per device x accumulation x ranks; ranks that work on the same rows count once.

    nanoGPT's accumulation is that of all ranks together: train.py divides it by their number.
    """
    if facts.maybe_text("job.framework") == "nanogpt":
        rows = facts.whole("train.micro_batch") * facts.whole("train.grad_accum")
        return Outcome(rows, "rows x accumulation of all ranks together")
    if facts.maybe_text("dist.kind") in SPLIT_MODEL:
        return None
    rows = facts.whole("train.micro_batch") * facts.whole("train.grad_accum")
    world, shared = facts.whole("dist.world_size"), facts.maybe_int("dist.model_ranks") or 1
    if shared == 1:
        return Outcome(rows * world, "rows x accumulation x ranks")
    if world % shared:
        return None
    return Outcome(rows * (world // shared), "rows x accumulation x ranks of different rows")


@derives(
    "train.full_finetune",
    reads=(
        "lora.on",
        "quant.kind",
        "train.trainable_share",
        "train.trainable_params",
        "model.params",
        "job.task",
        "run.inference_only",
    ),
)
def full_finetune(facts: Inputs) -> Outcome | None:
    """No adapter, no quantised base, and a task that trains; or the trainable share itself."""
    part = facts.maybe_number("train.trainable_share")
    trained, params = facts.maybe_int("train.trainable_params"), facts.maybe_int("model.params")
    if part is None and trained is not None and params:
        part = trained / params
    if part is not None:
        return Outcome(value=part >= FULL_SHARE, source="trainable share of the parameters")
    if facts.maybe_flag("lora.on"):
        return Outcome(value=False, source="an adapter is trained")
    if facts.maybe_flag("run.inference_only"):
        return Outcome(value=False, source="nothing is trained")
    if (facts.maybe_text("quant.kind") or "none") != "none":
        return Outcome(value=False, source="a quantised base cannot be trained in full")
    adapter = facts.maybe_flag("lora.on")
    if adapter is False and facts.maybe_text("job.task") in TRAINING_TASKS:
        return Outcome(value=True, source="a training task without adapter")
    return None


STEPS = (
    tokens,
    world_size,
    kind,
    shards_params,
    shards_optimizer,
    global_batch,
    full_finetune,
)
