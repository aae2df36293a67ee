"""Derived facts of adapters and quantised bases that lint asks for: targets, double scales."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Inputs, Outcome, derives

_SETTINGS = "job.settings"


@cache
def _bnb_call() -> re.Pattern[str]:
    return re.compile(r"^bitsandbytesconfig\.load_in_4bit = true$", re.MULTILINE)


@derives("quant.double", reads=("quant.kind", "job.framework", _SETTINGS))
def double(facts: Inputs) -> Outcome | None:
    """Axolotl's qlora and LLaMA-Factory quantise twice; BitsAndBytesConfig and TRL do not."""
    if facts.text("quant.kind") != "bnb4":
        return None
    framework, settings = facts.maybe_text("job.framework"), facts.glance(_SETTINGS)
    if framework == "axolotl" and re.search(r"^adapter = qlora$", settings, re.MULTILINE):
        return Outcome(value=True, source="Axolotl's qlora quantises twice")
    if framework == "llamafactory":
        return Outcome(value=True, source="default of LLaMA-Factory", guess=True)
    if _bnb_call().search(settings):
        return Outcome(value=False, source="default of BitsAndBytesConfig")
    if framework == "trl" and "train-config" in facts.closed:
        return Outcome(value=False, source="use_bnb_nested_quant is off by default", guess=True)
    return None


_Q_V = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


@derives("lora.targets", reads=("lora.on", "model.name", "job.framework", "lora.rank"))
def targets(facts: Inputs) -> Outcome | None:
    """PEFT adapts q and v of Llama and its kin where no targets are given."""
    if not facts.flag("lora.on") or facts.maybe_int("lora.rank") is None:
        return None
    if facts.maybe_text("job.framework") not in ("transformers", "trl", "plain"):
        return None
    from oomdoctor.facts import models

    found = models.lookup(facts.text("model.name"))
    if found is None or "train-config" not in facts.closed:
        return None
    if found.model.architecture not in (*_Q_V, "GemmaForCausalLM", "Gemma2ForCausalLM"):
        return None
    return Outcome("q_proj,v_proj", "default of PEFT for this architecture", guess=True)


STEPS = (double, targets)
