"""Derived facts that lint needs about the set-up: reentrant checkpoints, ranks, LoRA targets."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Inputs, Outcome, derives
from oomdoctor.facts.derive_lint_precision import PLAIN, SETTINGS, version

SHARDED = ("zero1", "zero2", "zero3", "fsdp1", "fsdp2", "tensor", "pipeline")
HUGGING_FACE = PLAIN | {"axolotl", "llamafactory"}


@derives("model.architecture", reads=("model.name",))
def architecture(facts: Inputs) -> Outcome | None:
    """The architecture of the model's name in the table of models."""
    name = facts.text("model.name")
    from oomdoctor.facts import models

    found = models.lookup(name)
    return None if found is None else Outcome(found.model.architecture, "table of models")


@derives("lora.unmatched", reads=("lora.on", "lora.targets", "model.architecture", "job.framework"))
def unmatched(facts: Inputs) -> Outcome | None:
    """Targets that no module is called; torchtune has names of its own."""
    if not facts.flag("lora.on") or facts.text("job.framework") not in HUGGING_FACE | {"unsloth"}:
        return None
    targets, name = facts.text("lora.targets"), facts.text("model.architecture")
    from oomdoctor.facts import lora_modules

    left = lora_modules.unmatched(name, targets)
    return None if left is None else Outcome(", ".join(left), f"names of modules in {name}")


@derives(
    "train.reentrant",
    reads=(
        *("train.grad_checkpointing", "train.checkpoint_reentrant", "job.framework", "dist.kind"),
        *("lora.on", "env.transformers", "env.trl"),
    ),
)
def reentrant(facts: Inputs) -> Outcome | None:
    """What is set, or what the framework in its version chooses."""
    if not facts.flag("train.grad_checkpointing"):
        return None
    framework, said = facts.text("job.framework"), facts.maybe_flag("train.checkpoint_reentrant")
    forced = framework == "trl" and facts.maybe_text("dist.kind") == "zero3"
    if forced and facts.maybe_flag("lora.on") and version(facts.text("env.trl")) >= (0, 29, 1):
        return Outcome(value=True, source="TRL forces it for PEFT under ZeRO-3 (0.29.1 on)")
    if said is not None:
        return Outcome(value=said, source="use_reentrant")
    if framework == "trl" and version(facts.text("env.trl")) >= (0, 29, 1):
        return Outcome(value=False, source="default of TRL (0.29.1 on)")
    if framework not in ("transformers", "trl"):
        return None
    old = version(facts.text("env.transformers")) < (5,)
    return Outcome(value=old, source=f"default of transformers {'4' if old else '5'}")


@cache
def _sharding() -> re.Pattern[str]:
    return re.compile(
        r"^(?:\w+\.)*(?:fsdp|deepspeed|fsdp_config|deepspeed_config|deepspeed_plugin|fsdp_plugin)"
        r"(?:\.[\w.]+)? = (?!null$|false$|none$|$)",
        re.MULTILINE,
    )


@derives("dist.unsharded", reads=("dist.kind", "job.framework", SETTINGS))
def unsharded(facts: Inputs) -> Outcome | None:
    """Stated by the kind of distribution, or nothing in a complete config speaks of sharding."""
    how = facts.maybe_text("dist.kind")
    if how is not None:
        return Outcome(value=how not in SHARDED, source=f"distribution: {how}")
    settings = facts.maybe_text(SETTINGS) or ""
    if "train-config" not in facts.closed or facts.text("job.framework") not in HUGGING_FACE:
        return None
    if _sharding().search(settings):
        return None
    source = "no file given speaks of FSDP or DeepSpeed; a launcher's own config could"
    return Outcome(value=True, source=source, guess=True)


@derives("dist.plain_ddp", reads=("dist.kind", "dist.world_size", "job.launcher", "dist.unsharded"))
def plain_ddp(facts: Inputs) -> Outcome | None:
    """Stated, or several ranks of a launcher without sharding."""
    how = facts.maybe_text("dist.kind")
    if how is not None:
        return Outcome(value=how == "ddp", source=f"distribution: {how}")
    if facts.whole("dist.world_size") < 2 or facts.text("job.launcher") == "python":
        return None
    return Outcome(value=facts.flag("dist.unsharded"), source="several ranks without sharding")


STEPS = (architecture, unmatched, reentrant, unsharded, plain_ddp)
