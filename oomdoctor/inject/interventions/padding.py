"""Pads rows to the longest of their batch instead of to the maximum: {"to": "longest"}."""

from __future__ import annotations

import functools
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for the tokenizers and the collators."""
    wanted = str(arguments.get("to") or "longest")
    agent.when_imported(
        "transformers.tokenization_utils_base", functools.partial(_wrap_tokenizer, agent, wanted)
    )


def _wrap_tokenizer(agent: Any, wanted: str, module: Any) -> None:
    told: list[bool] = []

    def padding_instead(original: Any) -> Any:
        @functools.wraps(original)
        def call(self: Any, *given: Any, **named: Any) -> Any:
            if named.get("padding") == "max_length":
                named["padding"] = wanted
                if not told:
                    told.append(True)
                    agent.tell("applied", hook="padding")
            return original(self, *given, **named)

        return call

    base = module.PreTrainedTokenizerBase
    for name in ("__call__", "pad"):
        setattr(base, name, padding_instead(getattr(base, name)))
