"""Derived facts of what is trained: the exact parameters of an adapter, or all of them."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Inputs, Outcome, derives

_ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
_MLP = ("gate_proj", "up_proj", "down_proj")
_ALL = frozenset(("all", "all-linear", "all_linear"))
_UNGATED = ("GPT", "OPT", "Bloom", "Falcon", "PhiForCausalLM", "Bert", "Roberta", "Distil")
_WHOLE = {"embed_tokens": 1, "lm_head": 1, "wte": 1}


@derives(
    "train.trainable_params",
    reads=(
        "lora.on",
        "lora.rank",
        "lora.targets",
        "lora.modules_to_save",
        "lora.dora",
        "model.layers",
        "model.hidden",
        "model.heads",
        "model.kv_heads",
        "model.head_dim",
        "model.intermediate",
        "model.vocab",
        "model.experts",
        "model.name",
        "job.settings",
    ),
)
def adapter_params(facts: Inputs) -> Outcome | None:
    """Sum over the targeted linears of rank x (inputs + outputs), all layers."""
    if not facts.flag("lora.on") or facts.maybe_int("model.experts"):
        return None
    if _other_adapter().search(facts.glance("job.settings")) is not None:
        return None
    per_layer = _adapter_layer(facts, _targets(facts, facts.text("lora.targets")))
    if per_layer is None:
        return None
    saved = _saved(facts, facts.maybe_text("lora.modules_to_save") or "")
    if saved is None:
        return None
    total = facts.whole("model.layers") * facts.whole("lora.rank") * per_layer + saved
    words = "layers x rank x (inputs + outputs) of the targets"
    return Outcome(total, f"{words} + whole modules" if saved else words)


@cache
def _other_adapter() -> re.Pattern[str]:
    """Return the pattern of settings that choose an adapter whose size has another formula."""
    kinds = "oft|ia3|loha|lokr|adalora|vera|prompt_tuning|prefix_tuning|p_tuning|xlora|boft|hra"
    keys = "finetuning_type|peft_type|peft_method|adapter"
    return re.compile(rf"^(?:\w+\.)*(?:{keys}) = (?:{kinds})$", re.MULTILINE | re.IGNORECASE)


def _names(text: str) -> tuple[str, ...]:
    """Return the names of a list as any config spells it."""
    plain = "".join(" " if c in "[]'\",()" else c for c in text)
    return tuple(dict.fromkeys(plain.split()))


def _targets(facts: Inputs, text: str) -> tuple[str, ...]:
    """Return the target names; `all` means other linears where a family fuses or lacks some."""
    names = _names(text)
    if not _ALL.intersection(names):
        return names
    from oomdoctor.facts import models

    found = models.lookup(facts.maybe_text("model.name") or "")
    family = "" if found is None else found.model.architecture
    if family.startswith("Phi3"):
        return ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")
    return names if family.startswith(_UNGATED) else (*_ATTENTION, *_MLP)


def _adapter_layer(facts: Inputs, targets: tuple[str, ...]) -> int | None:
    """Return the summed inputs + outputs of one layer's targets; None for unknown names."""
    hidden = facts.whole("model.hidden")
    heads, size = facts.whole("model.heads"), facts.whole("model.head_dim")
    queries = heads * size
    keys = (facts.maybe_int("model.kv_heads") or heads) * size
    width = facts.whole("model.intermediate")
    sizes = {
        "q_proj": hidden + queries,
        "k_proj": hidden + keys,
        "v_proj": hidden + keys,
        "o_proj": queries + hidden,
        "output_proj": queries + hidden,
        "gate_proj": hidden + width,
        "up_proj": hidden + width,
        "down_proj": width + hidden,
        "qkv_proj": hidden + queries + 2 * keys,
        "gate_up_proj": hidden + 2 * width,
    }
    if not targets or any(name not in sizes for name in targets):
        return None
    return sum(sizes[name] for name in targets)


def _saved(facts: Inputs, text: str) -> int | None:
    """Return the values of modules trained in full; None for a module of unknown size."""
    names = _names(text)
    if any(name not in _WHOLE for name in names):
        return None
    if not names:
        return 0
    return len(names) * facts.whole("model.vocab") * facts.whole("model.hidden")


@derives("train.trainable_params", reads=("train.full_finetune", "model.params"))
def all_params(facts: Inputs) -> Outcome | None:
    """All parameters, where the whole model is trained."""
    if not facts.flag("train.full_finetune"):
        return None
    return Outcome(facts.whole("model.params"), "all parameters", facts.slack("model.params"))


@derives("train.trainable_share", reads=("train.trainable_params", "model.params"))
def trainable_share(facts: Inputs) -> Outcome | None:
    """Trainable parameters / parameters."""
    value = facts.number("train.trainable_params") / facts.number("model.params")
    return Outcome(min(1.0, value), "trainable / all parameters") if value >= 0 else None


STEPS = (adapter_params, all_params, trainable_share)
