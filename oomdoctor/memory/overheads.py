"""What libraries add to the states: DDP buckets, optimizer temporaries, the k-bit upcast."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Inputs, Outcome, derives

UPCAST = 2


@cache
def _half_words() -> re.Pattern[str]:
    return re.compile(
        r"(?i)loaded in (?:b?float ?16|[bf]p?16|half)|dtype\W{1,4}(?:torch\.)?b?float16|\.half\(\)"
    )


@cache
def _quantised_words() -> re.Pattern[str]:
    return re.compile(
        r"(?i)load_in_[48]bit|quantization_config|bitsandbytes|\bbnb|\b[48][-_ ]?bit|nf4|gptq|awq|"
        r"qlora|int8_training"
    )


@derives("overheads.ddp_buckets", reads=("dist.kind", "states.gradients"))
def ddp_buckets(facts: Inputs) -> Outcome | None:
    """As large as the trainable gradients, unless gradients are views of the buckets."""
    if facts.text("dist.kind") != "ddp":
        return None
    slack = facts.slack("states.gradients")
    return Outcome(facts.whole("states.gradients"), "as large as the gradients", slack)


@derives(
    "overheads.optimizer_step",
    reads=("states.gradients", "optimizer.name", "optimizer.fused", "optimizer.offload"),
)
def optimizer_step(facts: Inputs) -> Outcome | None:
    """A foreach step holds one more copy of the gradients; a fused or 8-bit one does not."""
    name = facts.text("optimizer.name").lower()
    if (facts.maybe_text("optimizer.offload") or "none") != "none":
        return None
    fused = facts.maybe_flag("optimizer.fused") or "fused" in name
    if "adam" not in name or "bit" in name:
        return None
    if fused:
        return Outcome(0, "a fused step needs no temporaries")
    slack = facts.slack("states.gradients")
    return Outcome(facts.whole("states.gradients"), "one copy of the gradients (foreach)", slack)


@derives(
    "overheads.kbit_upcast",
    reads=(
        "quant.kbit_prepared",
        "quant.kind",
        "job.text",
        "model.params",
        "model.vocab",
        "model.hidden",
        "model.tied",
    ),
)
def kbit_upcast(facts: Inputs) -> Outcome | None:
    """2 bytes for each 16-bit value that becomes fp32: embedding and head, or the whole model."""
    if not facts.flag("quant.kbit_prepared"):
        return None
    plain = (facts.maybe_text("quant.kind") or "none") == "none"
    said = facts.glance("job.text")
    if plain and _half_words().search(said) and not _quantised_words().search(said):
        slack = UPCAST * facts.slack("model.params")
        words = "2 bytes x parameters: nothing is quantised"
        return Outcome(UPCAST * facts.whole("model.params"), words, slack, guess=True)
    tables = 1 if facts.maybe_flag("model.tied") else 2
    values = tables * facts.whole("model.vocab") * facts.whole("model.hidden")
    return Outcome(UPCAST * values, "2 bytes x values of embedding and head")


STEPS = (ddp_buckets, optimizer_step, kbit_upcast)
