"""Logits and loss: what the vocabulary costs on the plain path.

Measured: cross entropy over full logits peaks at 12.1 bytes per value (a 16-bit head output, its
fp32 copy, the shifted copy and the softmax's gradient); checkpointing does not reduce it.
"""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives

FP32 = 4
PEAK_BYTES = 12.1
PEAK_SLACK = 0.05
_CAPACITY = ("oom.capacity", "gpu.mig_slice", "gpu.total")
_PLAIN = ("full",)


@derives("logits.one_copy", reads=("train.tokens", "model.vocab"))
def one_copy(facts: Inputs) -> Outcome:
    """Rows x tokens x vocabulary x 4 bytes."""
    values = facts.whole("train.tokens") * facts.whole("model.vocab")
    return Outcome(FP32 * values, "rows x tokens x vocabulary x 4 bytes")


@derives(
    "logits.peak",
    reads=("train.tokens", "model.vocab", "model.kind", "loss.impl", "run.inference_only"),
)
def peak(facts: Inputs) -> Outcome | None:
    """12.1 x rows x tokens x vocabulary, unless the loss never sees all logits at once."""
    if facts.maybe_flag("run.inference_only"):
        return None
    if (facts.maybe_text("loss.impl") or "full") not in _PLAIN:
        return None
    if (facts.maybe_text("model.kind") or "causal-lm") != "causal-lm":
        return None
    total = PEAK_BYTES * facts.whole("train.tokens") * facts.whole("model.vocab")
    return Outcome(int(total), "12.1 x rows x tokens x vocabulary bytes", PEAK_SLACK * total)


@derives("logits.peak_share", reads=("logits.peak", *_CAPACITY))
def peak_share(facts: Inputs) -> Outcome:
    """Peak of the loss / capacity."""
    key = facts.first(*_CAPACITY)
    value = facts.number("logits.peak") / facts.number(key)
    slack = (facts.slack("logits.peak") + value * facts.slack(key)) / facts.number(key)
    return Outcome(value, "logits peak / capacity", slack)


STEPS = (one_copy, peak, peak_share)
