"""Sizes for lint of whole bases, generation by the trainer, and one sequence in vLLM's cache."""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives
from oomdoctor.memory import states
from oomdoctor.memory.kv_cache import HALF, width_of

FULL_STATES = 3  # gradients and two moments in the weights' dtype
ADAPTER_STATES = 12
# window attention, latent or linear caches: far less than two vectors per token and layer
OTHER_CACHES = ("Gemma2", "Gemma3", "GptOss", "Deepseek", "Qwen3Next", "Mamba", "Jamba", "Llama4")
_BASE = (
    *("model.params", "model.vocab", "model.hidden", "model.tied", "load.dtype"),
    *("quant.kind", "quant.double", "quant.kbit_prepared"),
)
_SHAPE = ("model.layers", "model.heads", "model.kv_heads", "model.head_dim")


@derives("load.whole", reads=_BASE)
def whole(facts: Inputs) -> Outcome:
    """Parameters x bytes of their dtype, or of their quantised form."""
    kind = facts.maybe_text("quant.kind") or "none"
    if kind == "none":
        each = states.dtype_bytes(facts.text("load.dtype"))
        total, slack = facts.whole("model.params") * each, facts.slack("model.params") * each
        return Outcome(int(total), f"parameters x {each:g} bytes", slack)
    total, slack = states.quantised_bytes(facts, kind, rest_bytes=2.0)
    return Outcome(int(total), f"{kind} linears + embedding and head x 2 bytes", slack)


@derives("load.whole_share", reads=("load.whole", "gpu.nominal"))
def whole_share(facts: Inputs) -> Outcome:
    """Weights / memory of the card."""
    value = facts.number("load.whole") / facts.number("gpu.nominal")
    slack = facts.slack("load.whole") + value * facts.slack("gpu.nominal")
    return Outcome(value, "weights / card", slack / facts.number("gpu.nominal"))


@derives(
    "load.alone_share",
    reads=("load.whole", "gpu.nominal", "lora.on", "train.trainable_params", "train.full_finetune"),
)
def alone_share(facts: Inputs) -> Outcome | None:
    """Weights, gradients and AdamW states on one card / memory of the card."""
    total = facts.number("load.whole")
    if facts.maybe_flag("train.full_finetune"):
        total += FULL_STATES * facts.number("load.whole")
    elif facts.flag("lora.on"):
        total += (states.MASTER_COPY + ADAPTER_STATES) * facts.whole("train.trainable_params")
    else:
        return None
    card = facts.number("gpu.nominal")
    slack = 4 * facts.slack("load.whole") + total / card * facts.slack("gpu.nominal")
    return Outcome(total / card, "weights, gradients and states / card", slack / card)


def _per_token(facts: Inputs) -> int:
    """Return the values that one token leaves in the cache of all layers."""
    heads = facts.maybe_int("model.kv_heads") or facts.whole("model.heads")
    return 2 * facts.whole("model.layers") * heads * facts.whole("model.head_dim")


@derives(
    "rl.kv_cache",
    reads=(
        *("rl.use_vllm", "rl.steps_per_generation", "train.micro_batch", "train.grad_accum"),
        *("train.seq_len", "gen.max_new_tokens", "job.task", *_SHAPE),
    ),
)
def rl_cache(facts: Inputs) -> Outcome | None:
    """Rows generated at once x tokens x 2 x layers x kv heads x head size x 2 bytes."""
    if facts.text("job.task") != "grpo" or facts.maybe_flag("rl.use_vllm"):
        return None
    steps = facts.maybe_int("rl.steps_per_generation") or facts.whole("train.grad_accum")
    rows = facts.whole("train.micro_batch") * steps
    tokens = max(facts.maybe_int("train.seq_len") or 0, facts.whole("gen.max_new_tokens"))
    words = f"{rows} rows x {tokens} tokens x 2 x layers x kv heads x head size x 2 bytes"
    return Outcome(rows * tokens * _per_token(facts) * HALF, words)


@derives(
    "eval.generation",
    reads=(
        "eval.generate",
        "eval.batch",
        "gen.beams",
        "gen.max_new_tokens",
        "train.seq_len",
        *_SHAPE,
    ),
)
def evaluation(facts: Inputs) -> Outcome | None:
    """Rows x beams x (prompt + new tokens) x 2 x layers x kv heads x head size x 2 bytes."""
    if not facts.flag("eval.generate"):
        return None
    beams = facts.maybe_int("gen.beams") or 1
    tokens = facts.whole("train.seq_len") + (facts.maybe_int("gen.max_new_tokens") or 0)
    rows = facts.whole("eval.batch") * beams
    words = f"{rows} rows and beams x {tokens} tokens x 2 x layers x kv heads x head size x 2 bytes"
    return Outcome(rows * tokens * _per_token(facts) * HALF, words)


@derives("rl.states_share", reads=("part.states", "rl.engine_share", "gpu.nominal"))
def rl_states(facts: Inputs) -> Outcome:
    """States of the trainer / card, and the engine's share."""
    card = facts.number("gpu.nominal")
    value = facts.number("part.states") / card + facts.number("rl.engine_share")
    return Outcome(value, "states / card + the engine's share", facts.slack("part.states") / card)


@derives(
    "serve.kv_one",
    reads=(
        *("serve.max_len", "model.max_positions", "serve.kv_type", "model.architecture"),
        *("job.framework", *_SHAPE),
    ),
)
def kv_one(facts: Inputs) -> Outcome | None:
    """2 x layers x kv heads x head size x bytes x the longest length, else the model's own."""
    if facts.text("job.framework") != "vllm":
        return None
    if any(mark in (facts.maybe_text("model.architecture") or "") for mark in OTHER_CACHES):
        return None
    said = facts.maybe_int("serve.max_len")
    tokens = facts.whole("model.max_positions") if said is None else said
    whose = "max_model_len" if said is not None else "the model's own length"
    each = width_of(facts.maybe_text("serve.kv_type"))
    words = f"{tokens} tokens ({whose}) x 2 x layers x kv heads x head size x {each:g} bytes"
    guess = said is None and "serve-config" not in facts.closed
    return Outcome(round(tokens * _per_token(facts) * each), words, guess=guess)


@derives(
    "serve.kv_room",
    reads=(
        *("serve.share", "gpu.nominal", "serve.tensor_parallel", "model.params", "model.vocab"),
        *("model.hidden", "model.tied", "quant.kind", "quant.double", "train.base_dtype"),
        *("model.dtype", "job.framework"),
    ),
)
def kv_room(facts: Inputs) -> Outcome | None:
    """Share x memory x cards - weights; what the profile run takes comes off as well."""
    if facts.text("job.framework") != "vllm":
        return None
    kind = facts.maybe_text("quant.kind") or "none"
    if kind == "none":
        said = facts.maybe_text("train.base_dtype") or facts.maybe_text("model.dtype") or "bf16"
        weights = facts.whole("model.params") * states.dtype_bytes(said)
        slack = facts.slack("model.params") * states.dtype_bytes(said)
    else:
        weights, slack = states.quantised_bytes(facts, kind, rest_bytes=2.0)
    cards = facts.maybe_int("serve.tensor_parallel") or 1
    budget = facts.number("serve.share") * facts.whole("gpu.nominal") * cards
    over = f" x {cards} cards" if cards > 1 else ""
    slack += facts.slack("gpu.nominal") * cards
    return Outcome(int(budget - weights), f"share x memory{over} - weights", slack)


STEPS = (
    whole,
    whole_share,
    alone_share,
    rl_cache,
    evaluation,
    rl_states,
    kv_one,
    kv_room,
)
