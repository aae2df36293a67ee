"""The memory of a training job in six parts, from closed formulas.

| part | formula |
|---|---|
| weights | parameters x bytes of their dtype or quantised form, split over sharding ranks |
| adapters | adapter parameters x 4 bytes (2 where the framework keeps them in bf16) |
| optimizer | trainable parameters x state bytes (AdamW 8 for fp32, 4 for bf16, 2.03 for 8 bit) |
| gradients | trainable parameters x bytes of their dtype |
| activations and logits | see activation_parts |
| context and fragmentation | 0.3 to 0.7 GiB for one process; fragmentation has no closed formula |

The sum is an upper bound: gradients grow while activations shrink. Where a tape of the step can
be made (peak_time), the peak is its highest point.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.facts import (
    derive_lint_adapters,
    derive_lint_dist,
    derive_lint_loss,
    derive_lint_memory,
    derive_lint_precision,
    derive_lint_setup,
    derive_lint_training,
    derive_trained,
)
from oomdoctor.facts.arguments import arguments
from oomdoctor.facts.derivation import (
    Derivation,
    Inputs,
    MissingFactError,
    Outcome,
    apply,
    derives,
)
from oomdoctor.facts.derive_job import params_leave
from oomdoctor.memory import (
    activation_parts,
    dist_sizes,
    engine_sizes,
    lint_sizes,
    overheads,
    states,
)
from oomdoctor.memory.peak_time import timed

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook

GIB = 1 << 30
CONTEXT = GIB // 2
CONTEXT_SLACK = 0.2 * GIB
MASTER = 4.0
_SHARDED = ("zero3", "fsdp1", "fsdp2")
_STATES_SPLIT = ("zero1", "zero2", *_SHARDED)
_GRADIENTS_SPLIT = ("zero2", *_SHARDED)
_READS = (
    *("model.params", "model.vocab", "model.hidden", "model.tied", "load.dtype", "load.split"),
    *("quant.kind", "quant.double", "quant.kbit_prepared", "train.param_dtype", "train.amp"),
    *("lora.on", "train.full_finetune", "train.trainable_params", "run.inference_only"),
    *("job.framework", "env.trl", "job.task", "dist.kind", "dist.shards_params"),
    *("dist.world_size", "dist.param_offload", "optimizer.name", "optimizer.offload"),
    *("optimizer.state_bits", "optimizer.in_backward", "ref.needed", "ref.separate"),
    *("dist.device_map", "gpu.count"),
)


def _ranks(facts: Inputs, kinds: tuple[str, ...]) -> int:
    """Return over how many ranks something is split; unknown where ranks are not counted."""
    how = facts.maybe_text("dist.kind") or "none"
    if how in kinds:
        return max(1, facts.whole("dist.world_size"))
    if facts.maybe_flag("load.split") and not (_placed(facts) or params_leave(facts)):
        raise MissingFactError("load.split")
    return 1


def _placed(facts: Inputs) -> bool:
    """Say whether a device map spreads layers over the cards there are; one card is a guess."""
    return facts.maybe_text("dist.device_map") is not None and facts.maybe_int("gpu.count") != 1


@derives("part.weights", reads=_READS)
def weights(facts: Inputs) -> Outcome | None:
    """Parameters x bytes of their dtype, or of their quantised form, per card."""
    kind = facts.settled("quant.kind") or "none"
    ranks = _ranks(facts, _SHARDED)
    over = f" / {ranks} ranks" if ranks > 1 else ""
    if params_leave(facts):
        return Outcome(0, "weights live off the card")
    if kind == "none":
        name = facts.text("load.dtype")
        each, words = states.dtype_bytes(name), ""
        if _reference(facts):
            each, words = 2 * each, "policy and reference, "
        total = facts.whole("model.params") * each / ranks
        slack = facts.slack("model.params") * each / ranks
        guess = bool(words) and facts.maybe_flag("ref.separate") is None
        guess = guess or _placed(facts)
        words = f"parameters x {each:g} bytes ({words}{name}){over}"
        return Outcome(int(total), words, slack, guess=guess)
    rest = 4.0 if facts.maybe_flag("quant.kbit_prepared") else 2.0
    total, slack = states.quantised_bytes(facts, kind, rest_bytes=rest)
    twice = facts.maybe_flag("quant.double")
    each = states.QUANT_BYTES.get(kind, states.NF4_DOUBLE if twice else states.NF4)
    words = f"linears x {each:g} bytes ({kind}) + embedding and head x {rest:g} bytes{over}"
    return Outcome(int(total / ranks), words, slack / ranks, guess=_placed(facts))


def _reference(facts: Inputs) -> bool:
    """Say whether a second copy of the base is there: an adapter's base is its own reference."""
    separate = facts.maybe_flag("ref.separate")
    if separate is not None:
        return separate
    return facts.maybe_flag("ref.needed") is True and facts.maybe_flag("lora.on") is False


def adapter_bytes(facts: Inputs) -> float:
    """Return the bytes of one adapter value: PEFT keeps fp32, TRL's QLoRA bf16 since 0.29."""
    said = facts.maybe_text("train.param_dtype")
    if said is not None:
        return states.dtype_bytes(said)
    quantised = (facts.settled("quant.kind") or "none").startswith("bnb")
    if quantised and facts.maybe_text("job.framework") == "trl":
        numbers = re.findall(r"\d+", facts.text("env.trl"))
        if tuple(map(int, numbers[:2])) >= (0, 29):
            return 2.0
    return 4.0


@derives("part.adapters", reads=_READS)
def adapters(facts: Inputs) -> Outcome:
    """Adapter parameters x bytes; nothing without an adapter."""
    if facts.maybe_flag("lora.on") is None and facts.maybe_flag("train.full_finetune"):
        return Outcome(0, "all parameters are trained")
    if not facts.flag("lora.on"):
        return Outcome(0, "no adapter")
    each = adapter_bytes(facts)
    total = facts.whole("train.trainable_params") * each
    words = f"adapter parameters x {each:g} bytes"
    return Outcome(int(total), words, facts.slack("train.trainable_params") * each)


def _trained(facts: Inputs) -> float:
    """Return the bytes of one trained value."""
    if facts.maybe_flag("lora.on"):
        return adapter_bytes(facts)
    return states.dtype_bytes(facts.text("load.dtype"))


@derives("part.gradients", reads=_READS)
def gradients(facts: Inputs) -> Outcome:
    """Trainable parameters x bytes of their dtype, split from ZeRO-2 on."""
    if facts.maybe_flag("run.inference_only"):
        return Outcome(0, "nothing is trained")
    if facts.maybe_flag("optimizer.in_backward"):
        return Outcome(0, "the optimizer steps inside backward, one tensor at a time")
    each, ranks = _trained(facts), _ranks(facts, _GRADIENTS_SPLIT)
    total = facts.whole("train.trainable_params") * each / ranks
    over = f" / {ranks} ranks" if ranks > 1 else ""
    slack = facts.slack("train.trainable_params") * each / ranks
    return Outcome(int(total), f"trainable parameters x {each:g} bytes{over}", slack)


@derives("part.optimizer", reads=_READS)
def optimizer(facts: Inputs) -> Outcome | None:
    """Trainable parameters x bytes of states; ZeRO keeps fp32 copies beside them."""
    if facts.maybe_flag("run.inference_only"):
        return Outcome(0, "nothing is trained")
    if (facts.maybe_text("optimizer.offload") or "none") != "none":
        return Outcome(0, "states live in main memory")
    each, name = _trained(facts), facts.settled("optimizer.name")
    if name is None:
        return None
    zero = (facts.maybe_text("dist.kind") or "").startswith("zero")
    per_value = states.state_bytes(name, MASTER if zero else each)
    bits = facts.maybe_number("optimizer.state_bits")
    if per_value and bits is not None and bits > 8:
        per_value = 2 * bits / 8
    if per_value is None:
        return None
    copies = MASTER if zero and each < MASTER else 0.0
    per_value += copies
    ranks = _ranks(facts, _STATES_SPLIT)
    total = facts.whole("train.trainable_params") * per_value / ranks
    over = f" / {ranks} ranks" if ranks > 1 else ""
    own = " with fp32 copies" if copies else ""
    words = f"trainable parameters x {per_value:.3g} bytes ({name}{own}){over}"
    return Outcome(int(total), words, facts.slack("train.trainable_params") * per_value / ranks)


@derives("part.context", reads=("job.framework",))
def context(facts: Inputs) -> Outcome:
    """0.3 to 0.7 GiB per process; fragmentation has no closed formula."""
    del facts
    words = "0.3 to 0.7 GiB for the CUDA context of one process; fragmentation comes on top"
    return Outcome(CONTEXT, words, CONTEXT_SLACK)


_STATES = ("part.weights", "part.adapters", "part.optimizer", "part.gradients")
PARTS = (*_STATES, "part.activations", "part.logits", "part.context")


@derives("part.states", reads=_STATES)
def all_states(facts: Inputs) -> Outcome:
    """Weights + adapters + optimizer + gradients."""
    total = sum(map(facts.whole, _STATES))
    return Outcome(total, "weights + adapters + optimizer + gradients", facts.slack(*_STATES))


@derives("peak.formula", reads=PARTS)
def peak(facts: Inputs) -> Outcome:
    """Sum of the six parts, an upper bound."""
    return Outcome(sum(map(facts.whole, PARTS)), "sum of the six parts", facts.slack(*PARTS))


def _share(key: str, part: str, whole: str) -> Derivation:
    """Return the derivation of a part as a share of a whole; it may exceed 1."""

    @derives(key, reads=(part, whole))
    def share(facts: Inputs) -> Outcome:
        value = facts.number(part) / facts.number(whole)
        slack = (facts.slack(part) + value * facts.slack(whole)) / facts.number(whole)
        return Outcome(value, f"{part} / {whole}", slack)

    return share


_SHARES = (
    ("peak.share", "peak.formula"),
    ("part.weights_share", "part.weights"),
    ("part.states_share", "part.states"),
    ("part.optimizer_share", "part.optimizer"),
    ("part.gradients_share", "part.gradients"),
    ("part.logits_share", "part.logits"),
    ("activations.plain_share", "activations.plain"),
    ("attention.eager_share", "attention.eager"),
    ("lora.saved_share", "lora.saved_bytes"),
    ("lora.states_share", "lora.states"),
    ("overheads.kbit_share", "overheads.kbit_upcast"),
    ("eval.batch_logits_share", "eval.batch_logits"),
    ("eval.kept_share", "eval.kept_logits"),
    ("zero.reduce_share", "zero.reduce_bytes"),
    ("rl.kv_share", "rl.kv_cache"),
    ("eval.generation_share", "eval.generation"),
)
_HOST_SHARES = (
    ("eval.kept_host_share", "eval.kept_logits"),
    ("data.buffered_share", "data.buffered"),
    ("host.offloaded_share", "host.offloaded"),
    ("host.gathered_share", "host.gathered"),
)

STEPS = (
    *derive_lint_memory.STEPS,
    *derive_lint_loss.STEPS,
    *derive_lint_adapters.STEPS,
    *derive_trained.STEPS,
    *derive_lint_setup.STEPS,
    *derive_lint_precision.STEPS,
    *derive_lint_training.STEPS,
    *derive_lint_dist.STEPS,
    weights,
    adapters,
    optimizer,
    gradients,
    context,
    *activation_parts.STEPS,
    overheads.kbit_upcast,
    *lint_sizes.STEPS,
    all_states,
    peak,
)
SIZES = (
    *dist_sizes.STEPS,
    *engine_sizes.STEPS,
    *(_share(key, part, "gpu.nominal") for key, part in _SHARES),
    *(_share(key, part, "host.ram_total") for key, part in _HOST_SHARES),
)


def derive(book: FactBook) -> FactBook:
    """Return the book with the parts and with everything that they and lint's rules rest on."""
    return apply(timed(apply(book.add(arguments(book)), STEPS)), SIZES)
