"""Pads rows to the longest of their batch instead of to the maximum."""

from __future__ import annotations

import functools
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Wait for the tokenizers."""
    del arguments
    agent.when_imported(
        "transformers.tokenization_utils_base", functools.partial(_wrap_tokenizer, agent)
    )


def _wrap_tokenizer(agent: Any, module: Any) -> None:
    def padding_instead(original: Any) -> Any:
        @functools.wraps(original)
        def call(self: Any, *given: Any, **named: Any) -> Any:
            if named.get("padding") == "max_length":
                named["padding"] = "longest"
                agent.intervened("pad-to-longest")
            return original(self, *given, **named)

        return call

    base = module.PreTrainedTokenizerBase
    for name in ("__call__", "pad"):
        setattr(base, name, padding_instead(getattr(base, name)))
