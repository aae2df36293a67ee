"""Key/value cache: two tensors per layer for each token that is kept."""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives

HALF = 2
WIDTHS = {"q8": 34 / 32, "q5": 22 / 32, "q4": 18 / 32, "fp8": 1.0, "int8": 1.0, "f32": 4.0}
"""Bytes per value by the beginning of the cache type's name; ggml keeps a scale per 32 values."""


@derives(
    "kv.total",
    reads=(
        "serve.max_len",
        "train.micro_batch",
        "train.seq_len",
        "gen.max_new_tokens",
        "serve.kv_type",
        "model.layers",
        "model.heads",
        "model.kv_heads",
        "model.head_dim",
    ),
)
def total(facts: Inputs) -> Outcome:
    """2 x layers x tokens x kv heads x head size x 2 bytes, or less for an 8- or 4-bit cache.

    Tokens: one sequence of the longest length for an engine, rows x (prompt + new) otherwise.
    """
    tokens = facts.maybe_int("serve.max_len")
    words = "one sequence of the longest length"
    if tokens is None:
        prompt = facts.maybe_int("train.seq_len") or 0
        new = facts.whole("gen.max_new_tokens")
        tokens = (facts.maybe_int("train.micro_batch") or 1) * (prompt + new)
        words = "rows x (prompt + new tokens)"
    heads = facts.maybe_int("model.kv_heads") or facts.whole("model.heads")
    values = 2 * facts.whole("model.layers") * tokens * heads * facts.whole("model.head_dim")
    width = width_of(facts.maybe_text("serve.kv_type"))
    formula = f"2 x layers x kv heads x head size x {width:g} bytes x {words}"
    return Outcome(round(values * width), formula)


def width_of(kind: str | None) -> float:
    """Return the bytes per value of a cache type's name; 2 for one that is not known."""
    return next((size for name, size in WIDTHS.items() if (kind or "").startswith(name)), HALF)


STEPS = (total,)
