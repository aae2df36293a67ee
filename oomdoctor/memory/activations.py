"""Saved activations of one step, in units of rows x tokens x hidden size x 2 bytes per layer.

Measured on decoder models with sdpa or flash attention: full training 10.1 + 2 kv/a + 4 i/h
(Llama-2-7B 22.8, Llama-3-8B 24.6, Qwen2.5-7B 31.5), LoRA on all linears 18.2 + 2 kv/a + 5 i/h,
on q and v about 19; fp32 without autocast 41.5 at i/h = 2.69. Full checkpointing keeps one unit
per layer and one layer's full cost while it runs backward.
"""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives

FULL = 10.1
ALL_LINEAR = 18.2
SOME_LINEAR = 19.0
AUTOCAST = 2.0
FP32_FACTOR = 41.5 / 22.8
EAGER_BYTES = 6
SLACK = 0.20
UNIT_BYTES = 2
_MLP_NAMES = ("gate_proj", "up_proj", "down_proj", "gate_up_proj", "all")


def layer_units(facts: Inputs) -> float:
    """Return the units that one layer saves without checkpointing."""
    wide = facts.number("model.intermediate") / facts.number("model.hidden")
    heads = facts.number("model.heads")
    grouped = 2 * (facts.maybe_number("model.kv_heads") or heads) / heads
    full = FULL + grouped + 4 * wide
    autocast = (facts.maybe_text("train.amp") or "none") != "none"
    if facts.maybe_flag("lora.on"):
        targets = facts.maybe_text("lora.targets") or ""
        if not any(name in targets for name in _MLP_NAMES):
            return SOME_LINEAR
        return full + AUTOCAST if autocast else ALL_LINEAR + grouped + 5 * wide
    if autocast:
        return full + AUTOCAST
    dtype = facts.maybe_text("train.param_dtype") or facts.maybe_text("train.base_dtype")
    return full * FP32_FACTOR if dtype == "fp32" else full


@derives(
    "activations.estimate",
    reads=(
        "train.tokens",
        "train.seq_len",
        "train.grad_checkpointing",
        "train.amp",
        "train.base_dtype",
        "train.param_dtype",
        "run.inference_only",
        "lora.on",
        "lora.targets",
        "attention.impl",
        "model.kind",
        "model.layers",
        "model.hidden",
        "model.heads",
        "model.kv_heads",
        "model.intermediate",
    ),
)
def estimate(facts: Inputs) -> Outcome | None:
    """Units per layer x layers, or one unit per layer and one full layer with checkpointing."""
    if facts.maybe_flag("run.inference_only"):
        return None
    if (facts.maybe_text("model.kind") or "causal-lm") != "causal-lm":
        return None
    tokens, layers = facts.whole("train.tokens"), facts.whole("model.layers")
    unit = tokens * facts.whole("model.hidden") * UNIT_BYTES
    layer = layer_units(facts) * unit
    if facts.maybe_text("attention.impl") == "eager":
        layer += EAGER_BYTES * tokens * facts.whole("train.seq_len") * facts.whole("model.heads")
    if facts.flag("train.grad_checkpointing"):
        total, words = layers * unit + layer, "layers x 1 unit + one layer in full"
    else:
        total, words = layers * layer, f"layers x {layer / unit:.1f} units"
    words += " of rows x tokens x hidden x 2 bytes"
    return Outcome(int(total), words, SLACK * total)


STEPS = (estimate,)
