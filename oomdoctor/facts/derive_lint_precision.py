"""Derived facts that lint needs about dtypes: of trained weights and of quantised products."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Inputs, Outcome, derives

HALVES = ("fp16", "bf16")
SETTINGS = "job.settings"
# trainers that leave the dtype of trained weights to transformers and PEFT
PLAIN = frozenset(("transformers", "trl", "accelerate", "plain"))
# families whose activations leave the range of fp16 (transformers 5.24.0 clamps T5's by hand)
OVERFLOWING = ("T5", "MT5", "UMT5", "LongT5", "Gemma3")


def version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


@cache
def _without_pad() -> re.Pattern[str]:
    return re.compile(
        r"(?:^|/)(?:gpt2(?:-\w+)?|distilgpt2|llama-2-\d+b(?:-chat)?(?:-hf)?|mistral-7b-v0\.1"
        r"|mistral-7b-instruct-v0\.[12]|meta-llama-3(?:\.1)?-\d+b(?:-instruct)?"
        r"|llama-3\.[12]-\d+b(?:-instruct)?)$",
        re.IGNORECASE,
    )


@cache
def _uncast() -> re.Pattern[str]:
    return re.compile(r"^(?:\w+\.)*autocast_adapter_dtype = false$", re.MULTILINE)


_READS = (
    *("lora.on", "lora.modules_to_save", "load.dtype", "quant.kind", "train.full_finetune"),
    *("job.framework", "env.peft", "env.trl", "train.param_dtype", SETTINGS),
)


@derives("train.trained_dtype", reads=_READS)
def trained_dtype(facts: Inputs) -> Outcome | None:
    """Full training trains what was loaded; PEFT makes adapters fp32, but not whole modules."""
    if facts.maybe_text("job.framework") not in PLAIN:
        return None
    if facts.maybe_flag("lora.on"):
        return _adapter_dtype(facts)
    if not facts.flag("train.full_finetune"):
        return None
    return Outcome(facts.text("load.dtype"), "the whole model is trained as it was loaded")


def _adapter_dtype(facts: Inputs) -> Outcome | None:
    kind = facts.maybe_text("quant.kind") or "none"
    cast = facts.maybe_text("job.framework") == "trl" and kind in ("bnb4", "bnb8")
    if cast and version(facts.text("env.trl")) >= (0, 29, 1):
        return Outcome("bf16", "TRL casts adapters on a quantised base to bf16 (0.29.1 on)")
    as_base = _as_base(facts, kind)
    if as_base is not None:
        return Outcome(facts.text("load.dtype"), as_base)
    if kind != "none":
        return Outcome("fp32", "adapters on a quantised base are made in fp32")
    new = version(facts.text("env.peft")) >= (0, 13)
    return Outcome("fp32", "PEFT makes adapters in fp32") if new else None


def _as_base(facts: Inputs, kind: str) -> str | None:
    """Return why something trained has the dtype of the base; None where nothing has."""
    if facts.maybe_text("lora.modules_to_save") is not None:
        return "PEFT keeps whole modules beside the adapter in the dtype of the base"
    if _uncast().search(facts.maybe_text(SETTINGS) or ""):
        return "autocast_adapter_dtype is off"
    if kind == "none" and version(facts.text("env.peft")) < (0, 12):
        return "PEFT before 0.12 makes adapters in the dtype of the base"
    return None


@derives("precision.tf32_on", reads=("train.tf32", "job.framework"))
def tf32_on(facts: Inputs) -> Outcome | None:
    """Stated, or off as torch has it where a whole config does not name it."""
    said = facts.maybe_flag("train.tf32")
    if said is not None:
        return Outcome(value=said, source="tf32 is set")
    if facts.text("job.framework") in PLAIN and "train-config" in facts.closed:
        return Outcome(value=False, source="off by default in torch", guess=True)
    return None


@derives(
    "quant.compute_dtype",
    reads=("quant.kind", "job.framework", "train.amp", "train.base_dtype", "load.by_name"),
)
def compute_dtype(facts: Inputs) -> Outcome | None:
    """Axolotl and LLaMA-Factory set it to their own dtype, TRL's command line to its --dtype."""
    if facts.text("quant.kind") != "bnb4":
        return None
    framework, amp = facts.text("job.framework"), facts.maybe_text("train.amp")
    if framework in ("axolotl", "llamafactory", "unsloth"):
        half = amp if amp in HALVES else facts.maybe_text("train.base_dtype")
        return None if half is None else Outcome(half, "the framework computes in its own dtype")
    if framework != "trl" or facts.maybe_flag("load.by_name") is not True:
        return None
    said = facts.maybe_text("train.base_dtype")
    if said is not None:
        return Outcome(said, "TRL computes in its --dtype")
    return Outcome("fp32", "TRL computes in its --dtype, fp32 by default", guess=True)


@derives("quant.type", reads=("quant.kind", "job.framework"))
def kind(facts: Inputs) -> Outcome | None:
    """Frameworks choose nf4; BitsAndBytesConfig itself is read where it is called."""
    if facts.text("quant.kind") != "bnb4":
        return None
    framework = facts.text("job.framework")
    if framework in ("axolotl", "llamafactory", "unsloth"):
        return Outcome("nf4", f"{framework} quantises to nf4")
    return None


@derives("quant.storage", reads=("quant.kind", "job.framework", "train.amp", SETTINGS))
def storage(facts: Inputs) -> Outcome | None:
    """Axolotl's qlora stores bf16, LLaMA-Factory its compute dtype."""
    if facts.text("quant.kind") != "bnb4":
        return None
    framework = facts.text("job.framework")
    adapter = re.search(r"^adapter = qlora$", facts.maybe_text(SETTINGS) or "", re.MULTILINE)
    if framework == "axolotl" and adapter:
        return Outcome("bf16", "Axolotl's qlora stores 4-bit weights in bf16 tensors")
    if framework == "llamafactory" and facts.maybe_text("train.amp") in HALVES:
        return Outcome(facts.text("train.amp"), "LLaMA-Factory stores them in its compute dtype")
    return None


@derives("model.bf16_trained", reads=("model.architecture",))
def bf16_trained(facts: Inputs) -> Outcome:
    """Families whose activations are known to leave the range of fp16."""
    name = facts.text("model.architecture")
    return Outcome(value=name.startswith(OVERFLOWING), source=f"architecture {name}")


@derives("model.pad_token", reads=("model.name",))
def pad_token(facts: Inputs) -> Outcome | None:
    """The published tokenizers of these families have no pad token; of others nothing is known."""
    found = _without_pad().search(facts.text("model.name"))
    words = "the published tokenizer of this model has none"
    return Outcome(value=False, source=words) if found else None


STEPS = (trained_dtype, tf32_on, compute_dtype, kind, storage, bf16_trained, pad_token)
