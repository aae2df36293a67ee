"""Key/value cache: two tensors per layer for each token that is kept."""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives

HALF = 2


@derives(
    "kv.total",
    reads=(
        "serve.max_len",
        "train.micro_batch",
        "train.seq_len",
        "gen.max_new_tokens",
        "model.layers",
        "model.heads",
        "model.kv_heads",
        "model.head_dim",
    ),
)
def total(facts: Inputs) -> Outcome:
    """2 x layers x tokens x kv heads x head size x 2 bytes.

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
    size = 2 * facts.whole("model.layers") * tokens * heads * facts.whole("model.head_dim") * HALF
    return Outcome(size, f"2 x layers x kv heads x head size x 2 bytes x {words}")


STEPS = (total,)
