"""Weights, gradients and optimizer states in bytes: coefficients times parameters.

| part | bytes per parameter |
|---|---|
| weights | fp32 4, 16 bit 2, fp8 and int8 1, nf4 0.5625, nf4 with double quantisation 0.516 |
| gradients | those of the trainable weight |
| AdamW | 8 for fp32 weights, 4 for bf16 ones; 8-bit 2.03; ZeRO keeps fp32 copies: 12 |

Quantisation covers the linear layers; embeddings, head and norms stay 16 bit.
"""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, MissingFactError, Outcome, derives
from oomdoctor.facts.derive_job import params_leave

DTYPE_BYTES = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5}
NF4 = 0.5625
NF4_DOUBLE = 0.516
GROUPED_4BIT = 0.52
QUANT_BYTES = {"bnb8": 1.0, "gptq": GROUPED_4BIT, "awq": GROUPED_4BIT, "fp8": 1.0}
QUANT_SLACK = {"gptq": 0.25, "awq": 0.10}
ADAM_8BIT = 2 + 8 / 256
MASTER_COPY = 4.0
ENGINES = ("vllm", "sglang")
_SHAPE = ("model.params", "model.vocab", "model.hidden", "model.tied")
_WEIGHT_READS = (
    *_SHAPE,
    "model.dtype",
    "train.base_dtype",
    "train.param_dtype",
    "train.full_finetune",
    "quant.kind",
    "quant.double",
    "quant.kbit_prepared",
    "lora.on",
    "job.framework",
    "dist.kind",
    "dist.shards_params",
    "dist.world_size",
    "dist.param_offload",
    "serve.tensor_parallel",
)


def dtype_bytes(dtype: str) -> float:
    """Return the bytes of one value; a word that is no dtype gives nothing."""
    size = DTYPE_BYTES.get(dtype)
    if size is None:
        raise MissingFactError(dtype)
    return size


def weight_bytes(facts: Inputs) -> float:
    """Return the bytes of one unquantised weight value."""
    keys = ("train.base_dtype", "train.param_dtype")
    if facts.maybe_flag("train.full_finetune"):
        keys = keys[::-1]
    for key in keys:
        dtype = facts.maybe_text(key)
        if dtype is not None:
            return dtype_bytes(dtype)
    if facts.maybe_text("job.framework") in ENGINES:
        return dtype_bytes(facts.text("model.dtype"))
    raise MissingFactError(keys[0])


def table_params(facts: Inputs) -> int:
    """Return the parameters of embedding and head, 0 where the shape is unknown."""
    vocab, hidden = facts.maybe_int("model.vocab"), facts.maybe_int("model.hidden")
    if vocab is None or hidden is None:
        return 0
    return vocab * hidden * (1 if facts.maybe_flag("model.tied") else 2)


def quantised_bytes(facts: Inputs, kind: str, *, rest_bytes: float) -> tuple[float, float]:
    """Return (bytes, slack) of a quantised base whose tables keep `rest_bytes` per value."""
    params, rest = facts.whole("model.params"), table_params(facts)
    per_value = QUANT_BYTES.get(kind)
    if kind == "bnb4":
        per_value = NF4_DOUBLE if facts.maybe_flag("quant.double") else NF4
    if per_value is None:
        raise MissingFactError("quant.kind")
    total = max(0, params - rest) * per_value + rest * rest_bytes
    unknown_tables = 0.0 if rest else 0.15
    slack = total * (unknown_tables + QUANT_SLACK.get(kind, 0.0))
    return total, slack + per_value * facts.slack("model.params")


def params_split(facts: Inputs) -> int:
    """Return over how many devices the weights are split."""
    parallel = facts.maybe_int("serve.tensor_parallel")
    if parallel is not None and parallel > 1:
        return parallel
    if not facts.maybe_flag("dist.shards_params"):
        return 1
    return facts.whole("dist.world_size")


@derives("states.weights", reads=_WEIGHT_READS)
def weights(facts: Inputs) -> Outcome | None:
    """Parameters x bytes of their dtype, or of their quantised form, per device."""
    if params_leave(facts):
        return None
    kind = facts.maybe_text("quant.kind")
    ranks = params_split(facts)
    if kind in (None, "none"):
        per_value = weight_bytes(facts)
        certain = kind is not None or "train-config" in facts.closed
        certain = certain or facts.maybe_flag("train.full_finetune") is True
        return Outcome(
            int(facts.whole("model.params") * per_value / ranks),
            _per("parameters", per_value, ranks),
            facts.slack("model.params") * per_value / ranks,
            guess=not certain,
        )
    upcast = 4.0 if facts.maybe_flag("quant.kbit_prepared") else 2.0
    total, slack = quantised_bytes(facts, str(kind), rest_bytes=upcast)
    words = f"{kind} linears + {upcast:g} bytes x embeddings and head"
    return Outcome(int(total / ranks), words + _over(ranks), slack / ranks)


def _per(what: str, per_value: float, ranks: int) -> str:
    return f"{what} x {per_value:g} bytes{_over(ranks)}"


def _over(ranks: int) -> str:
    return f" / {ranks} ranks" if ranks > 1 else ""


def trained_bytes(facts: Inputs) -> float:
    """Return the bytes of one trainable value: adapters are fp32 unless something else is said."""
    dtype = facts.maybe_text("train.param_dtype")
    if dtype is not None:
        return dtype_bytes(dtype)
    if facts.maybe_flag("lora.on"):
        return DTYPE_BYTES["fp32"]
    return weight_bytes(facts)


def _optimizer_split(facts: Inputs, kinds: tuple[str, ...]) -> int:
    """Return over how many ranks gradients or states are split."""
    how = facts.maybe_text("dist.kind") or "none"
    if facts.maybe_flag("dist.shards_params") or how in kinds:
        return max(1, facts.whole("dist.world_size"))
    return 1


_TRAINED_READS = (
    *_WEIGHT_READS,
    "train.trainable_params",
    "run.inference_only",
    "optimizer.in_backward",
)


@derives("states.gradients", reads=_TRAINED_READS)
def gradients(facts: Inputs) -> Outcome | None:
    """Trainable parameters x bytes of their dtype; split from ZeRO-2 on."""
    if facts.maybe_flag("run.inference_only"):
        return Outcome(0, "nothing is trained")
    if facts.maybe_flag("optimizer.in_backward"):
        return None
    per_value = trained_bytes(facts)
    ranks = _optimizer_split(facts, ("zero2", "zero3"))
    total = facts.whole("train.trainable_params") * per_value / ranks
    slack = facts.slack("train.trainable_params") * per_value / ranks
    return Outcome(int(total), _per("trainable parameters", per_value, ranks), slack)


def state_bytes(name: str, weight: float) -> float | None:
    """Return the bytes of optimizer states per trained value; None for an unknown optimizer."""
    low = name.lower()
    family = next((f for f in ("adafactor", "lion", "adam", "rmsprop", "adagrad") if f in low), "")
    if family == "adafactor":
        return 0.0
    if any(word in low for word in ("galore", "apollo", "lomo", "mini", "ademamix")):
        return None
    values = {"adam": 2, "lion": 1, "rmsprop": 1, "adagrad": 1}.get(family)
    if values is None:
        return 0.0 if low == "sgd" else None
    if "8bit" in low or "8-bit" in low:
        return values * ADAM_8BIT / 2
    if "4bit" in low or "4-bit" in low:
        return values * 0.53
    return values * (4.0 if "32bit" in low else weight)


@derives(
    "states.optimizer",
    reads=(*_TRAINED_READS, "optimizer.name", "optimizer.offload", "optimizer.state_bits"),
)
def optimizer(facts: Inputs) -> Outcome | None:
    """Trainable parameters x bytes of states; ZeRO adds fp32 master weights and splits both."""
    if facts.maybe_flag("run.inference_only"):
        return Outcome(0, "nothing is trained")
    if (facts.maybe_text("optimizer.offload") or "none") != "none":
        return Outcome(0, "states live in host memory")
    weight = trained_bytes(facts)
    zero = (facts.maybe_text("dist.kind") or "").startswith("zero")
    master = MASTER_COPY if zero and weight < MASTER_COPY else 0.0
    per_value = state_bytes(facts.text("optimizer.name"), MASTER_COPY if zero else weight)
    bits = facts.maybe_number("optimizer.state_bits")
    if bits is not None and per_value:
        per_value = 2 * bits / 8
    if per_value is None:
        return None
    per_value += master
    ranks = _optimizer_split(facts, ("zero1", "zero2", "zero3"))
    total = facts.whole("train.trainable_params") * per_value / ranks
    slack = facts.slack("train.trainable_params") * per_value / ranks
    return Outcome(int(total), _per("trainable parameters", per_value, ranks), slack)


@derives("states.total", reads=("states.weights", "states.gradients", "states.optimizer"))
def total(facts: Inputs) -> Outcome:
    """Weights + gradients + optimizer states."""
    keys = ("states.weights", "states.gradients", "states.optimizer")
    return Outcome(
        sum(map(facts.whole, keys)),
        "weights + gradients + optimizer states",
        facts.slack(*keys),
    )


STEPS = (weights, gradients, optimizer, total)
