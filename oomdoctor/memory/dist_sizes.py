"""Sizes and states of ranks for lint: DDP and ZeRO buckets, offloading, gathering, checkpoints."""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives
from oomdoctor.facts.derive_job import params_leave
from oomdoctor.memory import states

ZERO_BUCKET = 5 * 10**8
ZERO_LIVE = 10**9
GRADIENT_16 = 2
OFFLOADED = 16  # fp32 master weights, two moments and gradients
MASTER = 4
MOMENTS = 8
IMAGE_VALUE = 4
CHANNELS = 3
PREFETCH = 2
ONE_MACHINE = 8
REPLACING = ("apollo", "galore", "badam", "muon", "adam_mini")


@derives("dist.nodes", reads=("dist.world_size",))
def nodes(facts: Inputs) -> Outcome | None:
    """One machine where no more ranks run than a machine usually has cards."""
    if facts.whole("dist.world_size") > ONE_MACHINE:
        return None
    return Outcome(1, f"at most {ONE_MACHINE} ranks fit one machine", guess=True)


@derives("dist.node_ranks", reads=("dist.world_size", "dist.nodes"))
def node_ranks(facts: Inputs) -> Outcome:
    """Ranks / machines."""
    return Outcome(facts.whole("dist.world_size") // facts.whole("dist.nodes"), "ranks / machines")


@derives("dist.buckets", reads=("dist.kind", "dist.bucket_views", "part.gradients"))
def buckets(facts: Inputs) -> Outcome | None:
    """As large as the gradients of a rank, unless gradients are views of the buckets."""
    if facts.text("dist.kind") != "ddp" or facts.maybe_flag("dist.bucket_views"):
        return None
    size = facts.whole("part.gradients")
    return Outcome(size, "as large as the gradients of a rank", facts.slack("part.gradients"))


@derives(
    "data.buffered",
    reads=(
        *("data.workers", "data.prefetch", "train.micro_batch", "vision.image_pixels"),
        "dist.node_ranks",
    ),
)
def buffered(facts: Inputs) -> Outcome:
    """Workers x batches each x rows x pixels x 3 colours x 4 bytes, for all ranks of a machine."""
    held = facts.whole("data.workers") * (facts.maybe_int("data.prefetch") or PREFETCH)
    image = facts.whole("vision.image_pixels") * CHANNELS * IMAGE_VALUE
    ranks = facts.maybe_int("dist.node_ranks") or 1
    total = held * facts.whole("train.micro_batch") * image * ranks
    return Outcome(total, "workers x prefetched batches x rows x pixels x 12 bytes x ranks")


_ZERO = ("zero.reduce_bucket", "zero.reduce_auto", "zero.overlap", "dist.kind", "model.hidden")


@derives("zero.reduce_values", reads=_ZERO)
def reduce_values(facts: Inputs) -> Outcome | None:
    """The written number; hidden^2 where transformers fills it in; else DeepSpeed's 5e8."""
    said = facts.maybe_int("zero.reduce_bucket")
    if said is not None:
        return Outcome(said, "reduce_bucket_size")
    if facts.maybe_flag("zero.reduce_auto"):
        return Outcome(facts.whole("model.hidden") ** 2, "transformers fills in hidden^2")
    if "zero-config" not in facts.closed or not facts.text("dist.kind").startswith("zero"):
        return None
    return Outcome(ZERO_BUCKET, "default of DeepSpeed (0.19.8)", guess=True)


@derives("zero.reduce_bytes", reads=(*_ZERO, "zero.reduce_values"))
def reduce_bytes(facts: Inputs) -> Outcome | None:
    """Values x 2 bytes; ZeRO-1 and 2 keep two buckets where communication overlaps."""
    kind = facts.text("dist.kind")
    if not kind.startswith("zero"):
        return None
    times = 2 if kind != "zero3" and facts.maybe_flag("zero.overlap") else 1
    total = facts.whole("zero.reduce_values") * GRADIENT_16 * times
    return Outcome(total, f"{times} x values of a bucket x 2 bytes")


@derives("zero.live_values", reads=("zero.max_live", "dist.kind"))
def live_values(facts: Inputs) -> Outcome | None:
    """The limit of ZeRO-3 as written; DeepSpeed's 1e9 where a whole config leaves it out."""
    if facts.text("dist.kind") != "zero3":
        return None
    live = facts.maybe_int("zero.max_live")
    if live is not None:
        return Outcome(live, "stage3_max_live_parameters")
    if "zero-config" not in facts.closed:
        return None
    return Outcome(ZERO_LIVE, "default of DeepSpeed (0.19.8)", guess=True)


@derives(
    "host.offloaded",
    reads=(
        *("optimizer.offload", "dist.param_offload", "dist.kind", "dist.nodes"),
        *("train.trainable_params", "model.params"),
    ),
)
def offloaded(facts: Inputs) -> Outcome | None:
    """Trainable parameters x 16 bytes, and the parameters themselves x 2, per machine."""
    trained = facts.maybe_text("optimizer.offload") == "cpu"
    weights = facts.maybe_text("dist.param_offload") == "cpu" and params_leave(facts)
    if not trained and not weights:
        return None
    fsdp = (facts.maybe_text("dist.kind") or "").startswith("fsdp")
    total, words = 0, []
    if trained or (weights and fsdp):
        total += OFFLOADED * facts.whole("train.trainable_params")
        words.append("trainable parameters x 16 bytes")
    if weights:
        total += GRADIENT_16 * facts.whole("model.params")
        words.append("parameters x 2 bytes")
    machines = facts.whole("dist.nodes")
    over = f", over {machines} machines" if machines > 1 else ""
    slack = OFFLOADED * facts.slack("train.trainable_params") / machines
    return Outcome(total // machines, " + ".join(words) + over, slack)


@derives(
    "host.gathered",
    reads=(
        *("dist.kind", "dist.state_dict", "save.only_model", "train.full_finetune"),
        *("model.params", "zero.gathers_on_save"),
    ),
)
def gathered(facts: Inputs) -> Outcome | None:
    """FSDP: parameters x 4 bytes, and x 8 more for the states; ZeRO-3: parameters x 2 bytes."""
    params, slack = facts.whole("model.params"), facts.slack("model.params")
    kind = facts.text("dist.kind")
    if kind == "zero3" and facts.flag("zero.gathers_on_save"):
        words = "parameters x 2 bytes"
        return Outcome(GRADIENT_16 * params, words, GRADIENT_16 * slack)
    if kind not in ("fsdp1", "fsdp2") or facts.text("dist.state_dict") != "full":
        return None
    if not facts.flag("train.full_finetune"):
        return None
    each = MASTER if facts.maybe_flag("save.only_model") else MASTER + MOMENTS
    return Outcome(each * params, f"parameters x {each} bytes", each * slack)


def _other_optimizer(facts: Inputs) -> bool:
    """Say whether a switch puts another optimizer in the place of the one that is named."""
    settings = facts.maybe_text("job.settings") or ""
    return any(f"use_{name} = true" in settings for name in REPLACING)


@derives(
    "save.checkpoint",
    reads=(
        *("train.full_finetune", "model.params", "load.dtype", "dist.kind", "train.amp"),
        *("optimizer.name", "save.only_model", "job.settings"),
    ),
)
def checkpoint(facts: Inputs) -> Outcome | None:
    """Parameters x (their bytes + those of the states); ZeRO saves fp32 copies beside them."""
    if not facts.flag("train.full_finetune") or _other_optimizer(facts):
        return None
    each = states.dtype_bytes(facts.text("load.dtype"))
    kind = facts.maybe_text("dist.kind") or "none"
    mixed = (facts.maybe_text("train.amp") or "none") != "none"
    kept = each
    if kind.startswith("zero"):
        kept = states.MASTER_COPY
    elif kind.startswith("fsdp") and mixed:
        each = kept = states.MASTER_COPY
    moments = states.state_bytes(facts.text("optimizer.name"), kept)
    if moments is None:
        return None
    total = each if facts.maybe_flag("save.only_model") else each + moments
    if kind.startswith("zero") and not facts.maybe_flag("save.only_model"):
        total += states.MASTER_COPY
    params = facts.whole("model.params")
    words = f"parameters x {total:.3g} bytes"
    return Outcome(int(params * total), words, facts.slack("model.params") * total)


STEPS = (
    nodes,
    node_ranks,
    buckets,
    buffered,
    reduce_values,
    reduce_bytes,
    live_values,
    offloaded,
    gathered,
    checkpoint,
)
