"""What weights, gradients and states can take at most and at least, and what they leave over.

The upper bound takes everything as fp32 with AdamW (16 bytes per parameter, 20 under ZeRO), or a
frozen fp32 base with adapter states; the lower bound takes the smallest form that fits the facts.
"""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives
from oomdoctor.memory.states import NF4_DOUBLE, params_split, quantised_bytes

FP32_ADAM = 16.0
ZERO_ADAM = 20.0
FP32 = 4.0
HALF = 2.0
GATHERED = 1.10
REFERENCE_TASKS = frozenset(("dpo", "kto", "grpo", "ppo"))
_CAPACITY = ("oom.capacity", "gpu.mig_slice", "gpu.total")
_READS = (
    "model.params",
    "model.vocab",
    "model.hidden",
    "model.tied",
    "model.kind",
    "job.task",
    "quant.kind",
    "quant.double",
    "lora.on",
    "train.full_finetune",
    "train.trainable_params",
    "train.base_dtype",
    "run.inference_only",
    "ref.needed",
    "ref.separate",
    "gen.colocated_engine",
    "dist.kind",
    "dist.shards_params",
    "dist.world_size",
    "serve.tensor_parallel",
    "optimizer.name",
    "optimizer.offload",
    "optimizer.in_backward",
)


@derives("states.static_high", reads=_READS)
def static_high(facts: Inputs) -> Outcome | None:
    """Upper bound of weights + gradients + states."""
    if facts.maybe_flag("gen.colocated_engine") or _several_models(facts):
        return None
    if facts.maybe_flag("run.inference_only"):
        total, words = FP32 * facts.whole("model.params"), "parameters x 4 bytes (fp32)"
    elif facts.maybe_flag("lora.on"):
        frozen, words = _frozen_high(facts)
        total = frozen + FP32_ADAM * facts.whole("train.trainable_params")
        words += " + trainable x 16 bytes"
    else:
        zero = (facts.maybe_text("dist.kind") or "").startswith("zero")
        per_value = ZERO_ADAM if zero else FP32_ADAM
        total = per_value * facts.whole("model.params")
        words = f"parameters x {per_value:g} bytes (fp32 with AdamW)"
    slack = total / facts.whole("model.params") * facts.slack("model.params")
    if _reference(facts):
        total += FP32 * facts.whole("model.params")
        words += " + a reference model"
    ranks = params_split(facts)
    if ranks > 1:
        total, words = total * GATHERED / ranks, f"({words}) / {ranks} ranks + 10 %"
    return Outcome(int(total), words, slack / ranks)


def _several_models(facts: Inputs) -> bool:
    """Say whether other networks share the card, as text encoder and VAE of a diffusion job do."""
    kind, task = facts.maybe_text("model.kind"), facts.maybe_text("job.task")
    return "diffusion" in (kind, task)


def _frozen_high(facts: Inputs) -> tuple[float, str]:
    """Return the most that a frozen base takes, and the formula."""
    kind = facts.maybe_text("quant.kind") or "none"
    if kind in ("none", "other"):
        return FP32 * facts.whole("model.params"), "parameters x 4 bytes"
    total, slack = quantised_bytes(facts, kind, rest_bytes=FP32)
    return total + slack, f"{kind} linears + embeddings and head x 4 bytes"


def _reference(facts: Inputs) -> bool:
    """Say whether a second copy of the model may be there."""
    if facts.maybe_flag("ref.separate"):
        return True
    needed = facts.maybe_flag("ref.needed")
    return needed is not False and facts.maybe_text("job.task") in REFERENCE_TASKS


@derives("states.static_low", reads=_READS)
def static_low(facts: Inputs) -> Outcome | None:
    """Lower bound: 16-bit or quantised weights, with gradients and states of a full training."""
    params = facts.whole("model.params")
    ranks = params_split(facts)
    known_layout = facts.maybe_text("dist.kind") is not None
    full = facts.maybe_flag("train.full_finetune") is True
    per_value = _weights_low(facts, full=full)
    words = f"parameters x {per_value:g} bytes"
    if full:
        per_value += _trained_low(facts)
        words = f"parameters x {per_value:g} bytes (16-bit weights, gradients and states)"
    if ranks > 1:
        words += f" / {ranks} ranks"
    total = per_value * params / ranks
    slack = per_value * facts.slack("model.params") / ranks
    return Outcome(int(total), words, slack, guess=not known_layout)


def _weights_low(facts: Inputs, *, full: bool) -> float:
    """Return the fewest bytes that a weight may take."""
    kind = facts.maybe_text("quant.kind")
    if kind in ("bnb8", "fp8"):
        return 1.0
    if kind not in (None, "none"):
        return NF4_DOUBLE
    certain = kind == "none" or full or "train-config" in facts.closed
    return 2.0 if certain else NF4_DOUBLE


def _trained_low(facts: Inputs) -> float:
    """Return the fewest bytes of gradients and states per parameter of a full training.

    Ranks that share states but not weights may hold next to none of them.
    """
    shared = (facts.maybe_text("dist.kind") or "none").startswith("zero")
    split = shared and not facts.maybe_flag("dist.shards_params")
    held = 0.0 if facts.maybe_flag("optimizer.in_backward") or split else 2.0
    name = (facts.maybe_text("optimizer.name") or "").lower()
    offloaded = (facts.maybe_text("optimizer.offload") or "none") != "none"
    if "adamw" in name and not offloaded and not split:
        held += 2.0 if "8bit" in name or "4bit" in name else 4.0
    return held


def _ratio(facts: Inputs, part: str, whole: str, words: str) -> Outcome:
    """Return part / whole with the rounding of both."""
    value = facts.number(part) / facts.number(whole)
    slack = (facts.slack(part) + value * facts.slack(whole)) / facts.number(whole)
    return Outcome(value, words, slack)


@derives("states.weights_share", reads=("states.weights", *_CAPACITY))
def weights_share(facts: Inputs) -> Outcome:
    """Weights / capacity."""
    return _ratio(facts, "states.weights", facts.first(*_CAPACITY), "weights / capacity")


@derives(
    "states.load_weights",
    reads=(
        "quant.at_load",
        "model.params",
        "train.base_dtype",
        "serve.tensor_parallel",
        "states.weights",
    ),
)
def load_weights(facts: Inputs) -> Outcome | None:
    """Parameters x their width in the checkpoint, which an engine reads before it quantises."""
    if not facts.maybe_flag("quant.at_load"):
        held, slack = facts.whole("states.weights"), facts.slack("states.weights")
        return Outcome(held, "as they are held afterwards", slack)
    ranks = max(1, facts.maybe_int("serve.tensor_parallel") or 1)
    width = FP32 if facts.maybe_text("train.base_dtype") == "fp32" else HALF
    total = facts.whole("model.params") * width / ranks
    words = f"parameters x {width:g} bytes" + (f" / {ranks} ranks" if ranks > 1 else "")
    return Outcome(int(total), words, facts.slack("model.params") * width / ranks)


@derives("states.load_share", reads=("states.load_weights", *_CAPACITY))
def load_share(facts: Inputs) -> Outcome:
    """Weights while they are read / capacity."""
    words = "weights while they are read / capacity"
    return _ratio(facts, "states.load_weights", facts.first(*_CAPACITY), words)


@derives("states.total_share", reads=("states.total", *_CAPACITY))
def total_share(facts: Inputs) -> Outcome:
    """Weights, gradients and states / capacity."""
    return _ratio(facts, "states.total", facts.first(*_CAPACITY), "states / capacity")


@derives("states.static_high_share", reads=("states.static_high", "torch.allocated"))
def static_high_share(facts: Inputs) -> Outcome:
    """Upper bound of the states / allocated; above 1 they may explain all of it."""
    words = "upper bound of the states / allocated"
    return _ratio(facts, "states.static_high", "torch.allocated", words)


@derives("states.rest_share", reads=("states.static_high", "torch.allocated"))
def rest_share(facts: Inputs) -> Outcome:
    """(Allocated - upper bound of the states) / allocated: what must be something else."""
    held = facts.number("torch.allocated")
    rest = max(0.0, held - facts.number("states.static_high")) / held
    slack = facts.slack("states.static_high", "torch.allocated") / held
    return Outcome(rest, "(allocated - upper bound of the states) / allocated", slack)


STEPS = (
    static_high,
    static_low,
    weights_share,
    load_weights,
    load_share,
    total_share,
    static_high_share,
    rest_share,
)
