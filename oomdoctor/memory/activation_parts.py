"""Activations and logits of one step as lint states them: with and without checkpointing.

Units are those of activations.py: rows x tokens x hidden size x 2 bytes per layer. Autocast over
fp32 weights keeps a 16-bit copy of every linear until its backward: all of them without
checkpointing, those of one layer with it.
"""

from __future__ import annotations

from oomdoctor.facts.derivation import Inputs, Outcome, derives
from oomdoctor.memory.activations import EAGER_BYTES, FP32_FACTOR, SLACK, UNIT_BYTES, layer_units
from oomdoctor.memory.logits import PEAK_BYTES, PEAK_SLACK
from oomdoctor.memory.states import table_params

COPY_BYTES = 2
TILE_TOKENS, TILE_ENTRIES, TILE_BYTES = 4096, 32768, 6  # TRL 1.16: fp32 values, 16-bit gradient
MAP_BYTES = 4
_SHAPE = (
    *("model.kind", "model.layers", "model.hidden", "model.heads", "model.kv_heads"),
    *("model.intermediate", "model.experts"),
)
_READS = (
    *("train.tokens", "train.seq_len", "train.amp", "train.base_dtype", "train.param_dtype"),
    *("load.dtype", "lora.on", "lora.targets", "attention.impl", "run.inference_only", *_SHAPE),
)
_COPIES = (
    *("model.params", "model.vocab", "model.tied", "model.layers", "model.hidden"),
    *("load.dtype", "train.amp", "quant.kind", "load.split", "train.grad_checkpointing"),
)


def _decoder(facts: Inputs) -> bool:
    """Say whether the measured coefficients are about this kind of model."""
    plain = (facts.maybe_text("model.kind") or "causal-lm") == "causal-lm"
    return plain and not facts.maybe_int("model.experts")


def _unit(facts: Inputs) -> int:
    return facts.whole("train.tokens") * facts.whole("model.hidden") * UNIT_BYTES


def _units(facts: Inputs) -> float:
    """Return the units of a layer; fp32 that nobody stated counts as well."""
    units = layer_units(facts)
    said = facts.maybe_text("train.param_dtype") or facts.maybe_text("train.base_dtype")
    plain = (facts.maybe_text("train.amp") or "none") == "none" and not facts.maybe_flag("lora.on")
    fp32 = said is None and facts.maybe_text("load.dtype") == "fp32"
    return units * FP32_FACTOR if plain and fp32 else units


def _layer(facts: Inputs) -> float:
    """Return the bytes that one layer keeps without checkpointing, eager score maps included."""
    layer = _units(facts) * _unit(facts)
    if facts.maybe_text("attention.impl") == "eager":
        pairs = facts.whole("train.tokens") * facts.whole("train.seq_len")
        layer += EAGER_BYTES * pairs * facts.whole("model.heads")
    return layer


@derives("activations.plain", reads=_READS)
def plain(facts: Inputs) -> Outcome | None:
    """Layers x units of one layer, nothing recomputed."""
    if facts.maybe_flag("run.inference_only") or not _decoder(facts):
        return None
    layer = _layer(facts)
    total = facts.whole("model.layers") * layer
    words = f"layers x {layer / _unit(facts):.1f} units of rows x tokens x hidden x 2 bytes"
    return Outcome(int(total), words, SLACK * total)


@derives("activations.checkpointed", reads=_READS)
def checkpointed(facts: Inputs) -> Outcome | None:
    """Layers x 1 unit, and one layer in full while it runs backward."""
    if facts.maybe_flag("run.inference_only") or not _decoder(facts):
        return None
    layer = _layer(facts)
    total = facts.whole("model.layers") * _unit(facts) + layer
    words = f"(layers + {layer / _unit(facts):.1f}) units of rows x tokens x hidden x 2 bytes"
    return Outcome(int(total), words, SLACK * total)


def _copies(facts: Inputs) -> float:
    """Return the bytes of the 16-bit copies that autocast makes of fp32 linears."""
    autocast = (facts.maybe_text("train.amp") or "none") in ("bf16", "fp16")
    quantised = (facts.maybe_text("quant.kind") or "none") != "none"
    if not autocast or quantised or facts.maybe_text("load.dtype") != "fp32":
        return 0.0
    if facts.maybe_flag("load.split"):
        return 0.0
    linears = facts.whole("model.params") - table_params(facts)
    parts = facts.whole("model.layers") if facts.maybe_flag("train.grad_checkpointing") else 1
    return COPY_BYTES * max(0, linears) / parts


@derives(
    "part.activations",
    reads=(*_COPIES, "activations.plain", "activations.checkpointed", "run.inference_only"),
)
def kept(facts: Inputs) -> Outcome | None:
    """What this job keeps for backward, with the copies that autocast makes."""
    if facts.maybe_flag("run.inference_only"):
        return None
    on = facts.flag("train.grad_checkpointing")
    key = "activations.checkpointed" if on else "activations.plain"
    copies = _copies(facts)
    how = "with checkpointing: " if on else "without checkpointing: "
    fact = facts.get(key)
    words = how + (fact.source or "" if fact is not None else "")
    if copies:
        words += f" + {COPY_BYTES} bytes per linear value for autocast's copies"
    return Outcome(facts.whole(key) + int(copies), words, facts.slack(key))


@derives(
    "part.logits",
    reads=(
        *("train.tokens", "model.vocab", "model.kind", "loss.used", "run.inference_only"),
        *("job.task", "job.framework", "dist.kind"),
    ),
)
def logits(facts: Inputs) -> Outcome | None:
    """12.1 bytes x rows x tokens x vocabulary where the loss sees all logits at once."""
    other = (facts.maybe_text("model.kind") or "causal-lm") != "causal-lm"
    if other or facts.maybe_flag("run.inference_only") or facts.maybe_text("dist.kind") == "tensor":
        return None
    if facts.maybe_text("job.task") in ("reward", "classification"):
        return Outcome(0, "a head of a few outputs, no vocabulary")
    how = facts.text("loss.used")
    if how != "full":
        return _fused(facts, how)
    total = PEAK_BYTES * facts.whole("train.tokens") * facts.whole("model.vocab")
    return Outcome(int(total), "12.1 bytes x rows x tokens x vocabulary", PEAK_SLACK * total)


def _fused(facts: Inputs, how: str) -> Outcome:
    """Return what a loss holds that works in chunks: TRL's a tile of a fixed size."""
    if how != "fused" or facts.maybe_text("job.framework") != "trl":
        return Outcome(0, f"the {how} loss never holds all logits")
    tile = min(facts.whole("train.tokens"), TILE_TOKENS) * TILE_BYTES
    tile *= min(facts.whole("model.vocab"), TILE_ENTRIES)
    return Outcome(tile, "a tile of the fused loss: up to 4,096 tokens x 32,768 entries x 6 bytes")


@derives(
    "attention.eager",
    reads=(
        *("attention.impl", "train.tokens", "train.seq_len", "model.heads", "model.layers"),
        "train.grad_checkpointing",
    ),
)
def eager(facts: Inputs) -> Outcome | None:
    """6 bytes x rows x heads x tokens^2, of one layer with checkpointing and of all without."""
    if facts.text("attention.impl") != "eager":
        return None
    pairs = facts.whole("train.tokens") * facts.whole("train.seq_len")
    times = 1 if facts.flag("train.grad_checkpointing") else facts.whole("model.layers")
    total = EAGER_BYTES * pairs * facts.whole("model.heads") * times
    words = f"6 bytes x rows x heads x tokens^2 x {times} layers"
    return Outcome(total, words, 0.05 * total)


@derives(
    "attention.maps",
    reads=("train.tokens", "train.seq_len", "model.heads", "model.layers"),
)
def maps(facts: Inputs) -> Outcome:
    """4 bytes x layers x rows x heads x tokens^2: score maps that a model returns."""
    pairs = facts.whole("train.tokens") * facts.whole("train.seq_len")
    total = MAP_BYTES * pairs * facts.whole("model.heads") * facts.whole("model.layers")
    return Outcome(total, "4 bytes x layers x rows x heads x tokens^2")


@derives("attention.mask", reads=("train.tokens", "train.seq_len"))
def mask(facts: Inputs) -> Outcome:
    """Rows x tokens^2 bytes: a dense boolean mask."""
    total = facts.whole("train.tokens") * facts.whole("train.seq_len")
    return Outcome(total, "rows x tokens^2 x 1 byte")


STEPS = (plain, checkpointed, kept, logits, eager, maps, mask)
