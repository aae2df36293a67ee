"""Derived fact of the loss: whether it sees all logits at once, or works in chunks."""

from __future__ import annotations

import re

from oomdoctor.facts.derivation import Inputs, Outcome, derives
from oomdoctor.facts.derive_lint_memory import at_least

_TRAINERS = frozenset(("transformers", "trl", "axolotl", "llamafactory"))
_SETTINGS = "job.settings"
_PLAIN_LOSS = " fixed_cross_entropy"


@derives(
    "loss.used",
    reads=("loss.impl", "job.framework", "job.task", "env.trl", "trace.stack", _SETTINGS),
)
def loss_used(facts: Inputs) -> Outcome | None:
    """The stated loss, or that of the stack; else the one that the framework computes."""
    stated = facts.settled("loss.impl")
    if stated not in (None, "full"):
        return Outcome(stated, "loss of the config")
    if _PLAIN_LOSS in facts.glance("trace.stack"):
        return Outcome("full", "the plain loss of transformers stands in the stack")
    return _loss_of(facts.maybe_text("job.framework"), facts, is_full=stated == "full")


def _loss_of(framework: str | None, facts: Inputs, *, is_full: bool) -> Outcome | None:
    """Return TRL's chunked (1.8) or fused loss (1.16), Unsloth's, or the full one."""
    if framework == "unsloth":
        return Outcome("fused", "Unsloth fuses head and loss", guess=True)
    tasks = ("sft", "dpo", "kto", "grpo", None)
    if framework == "trl" and facts.maybe_text("job.task") in tasks:
        used = facts.text("env.trl")
        if at_least(used, (1, 8)):
            how = "fused" if at_least(used, (1, 16)) else "chunked"
            return Outcome(how, f"loss of TRL {used}")
    if re.search(r"^kernel_config\.", facts.glance(_SETTINGS), re.MULTILINE):
        return None  # kernels of LLaMA-Factory's newer form, some of which fuse the loss
    if framework in _TRAINERS or is_full:
        return Outcome("full", "the plain loss of transformers")
    return None


STEPS = (loss_used,)
