"""Sizes that single lint rules speak of: whole saved modules, DoRA deltas, evaluation's logits."""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives
from oomdoctor.memory.states import NF4, NF4_DOUBLE, table_params

COPY_16 = 8  # 16-bit copy 2 + gradient 2 + two 16-bit moments 4
COPY_32 = 16
ADAPTER_STATES = 16
DELTA = 4
EVAL_BYTES = 10  # 16-bit logits 2, their fp32 copy 4, loss 4
KEPT = 4
_TABLES = ("embed_tokens", "lm_head", "wte", "word_embeddings", "embed_in", "embed_out")


def _saved_tables(text: str) -> tuple[str, ...]:
    plain = "".join(" " if c in "[]'\",()" else c for c in text)
    ends = (name.rpartition(".")[2] for name in plain.split())
    return tuple(dict.fromkeys(name for name in ends if name in _TABLES))


@derives(
    "lora.saved_bytes",
    reads=("lora.on", "lora.modules_to_save", "model.vocab", "model.hidden", "load.dtype"),
)
def saved(facts: Inputs) -> Outcome | None:
    """Modules x vocabulary x hidden x 8 bytes in 16 bit, 16 in fp32: copy, gradient, states."""
    if not facts.flag("lora.on"):
        return None
    names = _saved_tables(facts.text("lora.modules_to_save"))
    each = COPY_32 if facts.maybe_text("load.dtype") == "fp32" else COPY_16
    total = len(names) * facts.whole("model.vocab") * facts.whole("model.hidden") * each
    words = f"{len(names)} modules x vocabulary x hidden x {each} bytes"
    return Outcome(total, words)


@derives("lora.states", reads=("lora.on", "train.trainable_params"))
def adapter_states(facts: Inputs) -> Outcome | None:
    """Adapter parameters x 16 bytes: fp32 weights, gradients and two moments."""
    if not facts.flag("lora.on"):
        return None
    trained = facts.whole("train.trainable_params")
    return Outcome(ADAPTER_STATES * trained, "adapter parameters x 16 bytes")


@derives("lora.dora_delta", reads=("lora.dora", "model.hidden", "model.intermediate"))
def delta(facts: Inputs) -> Outcome | None:
    """Outputs x inputs x 4 bytes of the largest linear of a layer."""
    if not facts.flag("lora.dora"):
        return None
    total = DELTA * facts.whole("model.hidden") * facts.whole("model.intermediate")
    return Outcome(total, "hidden x feed-forward width x 4 bytes")


@derives(
    "quant.double_saves",
    reads=("quant.kind", "model.params", "model.vocab", "model.hidden", "model.tied"),
)
def double_saves(facts: Inputs) -> Outcome | None:
    """0.047 bytes x values of the linears."""
    if facts.text("quant.kind") != "bnb4":
        return None
    linears = max(0, facts.whole("model.params") - table_params(facts))
    return Outcome(int((NF4 - NF4_DOUBLE) * linears), "0.047 bytes x values of the linears")


@derives(
    "eval.batch_logits",
    reads=("eval.batch", "train.seq_len", "model.vocab", "model.kind", "job.task"),
)
def batch_logits(facts: Inputs) -> Outcome | None:
    """Evaluation rows x tokens x vocabulary x 10 bytes."""
    if facts.maybe_text("job.task") in ("reward", "classification"):
        return None
    if (facts.maybe_text("model.kind") or "causal-lm") != "causal-lm":
        return None
    values = facts.whole("eval.batch") * facts.whole("train.seq_len") * facts.whole("model.vocab")
    return Outcome(EVAL_BYTES * values, "evaluation rows x tokens x vocabulary x 10 bytes")


@derives("eval.kept_logits", reads=("data.eval_rows", "train.seq_len", "model.vocab"))
def kept_logits(facts: Inputs) -> Outcome:
    """Rows of the evaluation set x tokens x vocabulary x 4 bytes."""
    rows = facts.whole("data.eval_rows")
    values = rows * facts.whole("train.seq_len") * facts.whole("model.vocab")
    return Outcome(KEPT * values, "evaluation set x tokens x vocabulary x 4 bytes")


@derives(
    "eval.kv_cache",
    reads=(
        *("eval.batch", "train.seq_len", "model.layers", "model.heads", "model.kv_heads"),
        "model.head_dim",
    ),
)
def eval_cache(facts: Inputs) -> Outcome:
    """2 x layers x rows x tokens x kv heads x head size x 2 bytes."""
    heads = facts.maybe_int("model.kv_heads") or facts.whole("model.heads")
    tokens = facts.whole("eval.batch") * facts.whole("train.seq_len")
    values = 2 * facts.whole("model.layers") * tokens * heads * facts.whole("model.head_dim")
    return Outcome(2 * values, "2 x layers x rows x tokens x kv heads x head size x 2 bytes")


STEPS = (saved, adapter_states, delta, double_saves, batch_logits, kept_logits, eval_cache)
