"""Which layers keep all tokens in their cache, and which only a window of them.

By transformers 5.24.0: `layer_types` where a config has it, else the pattern of its family
(configuration_gemma2, _gemma3, _cohere2, _gpt_oss, _mistral, _phi3, _starcoder2). A layer of linear
attention keeps one state for each request, whatever its length; it is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.memory.formula_shape import shape_of, text_part
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_EVERY = {"gemma2": 2, "gemma3_text": 6, "gemma3": 6, "cohere2": 4, "gpt_oss": 2, "olmo3": 4}
"""Every so-many-th layer sees all tokens."""
_WHOLE = ("mistral", "ministral", "phi3", "starcoder2", "mixtral")
"""Families whose layers all have the window, where there is one."""


WITHOUT = ("mistral-7b-instruct-v0.2", "mistral-7b-v0.2")
"""Models that lost the window of the family's first one."""


class Layers(NamedTuple):
    """Layers that keep all tokens, and those that keep `window` of them."""

    whole: int
    windowed: int = 0
    window: int = 0

    def tokens(self, length: int, *, ahead: int = 0) -> int:
        """Return tokens x layers of one request; a window also holds the tokens of a pass."""
        kept = min(length, self.window + ahead)
        return self.whole * length + self.windowed * kept


def layers_of(config: Mapping[str, Any]) -> Layers:
    """Return the kinds of a model's layers."""
    text = text_part(config)
    count = shape_of(config).layers
    kind = str(text.get("model_type") or "")
    window = text.get("sliding_window")
    types = text.get("layer_types")
    if isinstance(types, list) and types:
        named = [str(one) for one in types[:count]]
        slides = sum("sliding" in one or "chunked" in one for one in named)
        linear = sum("linear" in one or "mamba" in one for one in named)
        size = window or text.get("attention_chunk_size") or 0
        if not size:
            return Layers(count - linear)
        return Layers(count - slides - linear, slides, int(size))
    if not isinstance(window, int) or text.get("use_sliding_window") is False:
        return Layers(count)
    pattern = text.get("sliding_window_pattern") or _EVERY.get(kind)
    if isinstance(pattern, int) and pattern > 1:
        return Layers(count // pattern, count - count // pattern, window)
    return Layers(0, count, window) if kind in _WHOLE else Layers(count)
