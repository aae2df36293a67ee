"""Names of the modules that LoRA can adapt, per architecture as transformers builds it.

Phi3ForCausalLM has one qkv_proj where Llama has q_proj, k_proj and v_proj, so that a list of
Llama's names adapts o_proj and down_proj alone. Read from the modeling files of transformers
5.24.0; architectures of remote code and mixtures of experts are left out, for their names differ
between versions. torchtune has names of its own.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.facts.tables import table

if TYPE_CHECKING:
    from collections.abc import Mapping

_CODE = frozenset("*|\\()[]^$+?")


@cache
def _names() -> Mapping[str, frozenset[str]]:
    """Return the module names of each architecture; read once, when first asked for."""
    loaded: dict[str, str] = table("lora_modules")
    return {architecture: frozenset(words.split()) for architecture, words in loaded.items()}


def unmatched(architecture: str, targets: str) -> tuple[str, ...] | None:
    """Return the targets that are no module's name, None where the architecture is not known.

    `targets` is a list joined by commas. PEFT compares the end of a dotted path; a pattern is
    not compared.
    """
    known = _names().get(architecture)
    plain = "".join(" " if mark in "[]'\"," else mark for mark in targets)
    words = tuple(dict.fromkeys(plain.split()))
    if known is None or not words or any(_CODE.intersection(word) for word in words):
        return None
    if any(word.replace("_", "-") in ("all", "all-linear") for word in words):
        return ()
    return tuple(word for word in words if word.rpartition(".")[2] not in known)


_OWN = {  # PEFT's own targets by model type (utils/constants.py of 0.21)
    **dict.fromkeys(
        (
            *("bart", "blip-2", "gpt_neo", "gptj", "llama", "llama4", "mistral", "mixtral", "opt"),
            *("gemma", "gemma2", "gemma3_text", "qwen2", "qwen3", "stablelm"),
        ),
        ("q_proj", "v_proj"),
    ),
    **dict.fromkeys(
        ("bloom", "chatglm", "falcon", "gpt_neox", "RefinedWeb", "RefinedWebModel"),
        ("query_key_value",),
    ),
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "electra"), ("query", "value")),
    **dict.fromkeys(("t5", "mt5"), ("q", "v")),
    **dict.fromkeys(("gpt2", "gpt_bigcode"), ("c_attn",)),
    "codegen": ("qkv_proj",),
    "deberta": ("in_proj",),
    "deberta-v2": ("query_proj", "value_proj"),
    "mpt": ("Wqkv",),
    "nemotron_h": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "phi": ("q_proj", "v_proj", "fc1", "fc2"),
}


_USUAL = {  # what people name for families that PEFT has no choice for
    "distilbert": ("q_lin", "v_lin"),
    "modernbert": ("Wqkv",),
    **dict.fromkeys(("vit", "deit", "beit", "dinov2", "swin"), ("query", "value")),
    **dict.fromkeys(("whisper", "wav2vec2", "clip", "siglip"), ("q_proj", "v_proj")),
}


def own_targets(model_type: str) -> tuple[str, ...]:
    """Return the modules that PEFT takes where none are named; empty where it refuses to choose."""
    return _OWN.get(model_type) or _OWN.get(model_type.removesuffix("_text"), ())


def usual_targets(model_type: str, *, experts: bool) -> tuple[str, ...]:
    """Return what is usually named where PEFT has no choice of its own.

    In a mixture of experts that is attention alone: an adapter on experts makes each of their
    matrices anew.
    """
    if experts:
        return ("q_proj", "k_proj", "v_proj", "o_proj")
    return _USUAL.get(model_type, ("all-linear",))
