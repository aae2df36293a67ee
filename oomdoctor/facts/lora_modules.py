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
