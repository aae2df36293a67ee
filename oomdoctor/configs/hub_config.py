"""A model's config.json from the hub: the shape of the network, nested for vision models.

{"architectures": ["Qwen2ForCausalLM"], "hidden_size": 3584, "num_hidden_layers": 28,
 "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import meanings, scalars
from oomdoctor.configs.claims import Claim, Table, dtype_of
from oomdoctor.configs.mapping import Dialect, open_end
from oomdoctor.configs.network import json_of
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Setting, Settings

SHAPE = {
    "model.layers": (
        "num_hidden_layers",
        "n_layer",
        "num_layers",
        "n_layers",
        "num_decoder_layers",
    ),
    "model.hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "model.heads": (
        "num_attention_heads",
        "n_head",
        "num_heads",
        "n_heads",
        "decoder_attention_heads",
    ),
    "model.kv_heads": ("num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num"),
    "model.head_dim": ("head_dim", "d_kv", "kv_channels"),
    "model.intermediate": ("intermediate_size", "n_inner", "d_ff", "ffn_dim", "ffn_hidden_size"),
    "model.vocab": ("vocab_size", "padded_vocab_size"),
    "model.max_positions": (
        "max_position_embeddings",
        "n_positions",
        "max_sequence_length",
        "n_ctx",
    ),
}
INSIDE = ("text_config", "llm_config", "language_config", "thinker_config.text_config", "decoder")
POSITIONS = (
    ("rope_", "rope"),
    ("rotary_", "rope"),
    ("alibi", "alibi"),
    ("relative_attention_num_buckets", "relative"),
)
ABSOLUTE = ("gpt2", "opt", "bert", "roberta", "gpt_neo", "xlm-roberta", "electra", "distilbert")
KINDS = (
    ("forconditionalgeneration", "seq2seq"),
    ("forcausallm", "causal-lm"),
    ("lmheadmodel", "causal-lm"),
    ("forsequenceclassification", "encoder"),
    ("formaskedlm", "encoder"),
    ("forimageclassification", "vision"),
    ("forspeech", "speech"),
)


def matches(settings: Settings) -> bool:
    """Say whether a network's shape stands at the top or in the part for text."""
    if settings.names("architectures", "model_type") == 2 and _trains_nothing(settings):
        return True  # of a network that counts its layers and widths otherwise, such as a CNN
    for prefix in ("", *(f"{inside}." for inside in INSIDE)):
        found = sum(
            any(settings.get(prefix + name) is not None for name in SHAPE[key])
            for key in ("model.layers", "model.hidden", "model.heads")
        )
        if found >= 2 and (settings.names("architectures", "model_type") or found == 3):
            return _trains_nothing(settings)
    return False


def _trains_nothing(settings: Settings) -> bool:
    return settings.names("per_device_train_batch_size", "trainer", "batch_size") == 0


def derived(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Read the shape; for vision models the text model's, which holds most of the bytes."""
    prefixes = ["", *(f"{inside}." for inside in INSIDE)]
    for key, names in SHAPE.items():
        row = settings.first(*(prefix + name for prefix in prefixes for name in names))
        number = scalars.as_count(row.value) if row else None
        if row is not None and number is not None and number > 0:
            yield Claim(key, number), row
            if key == "model.heads":
                yield from _kv_heads(settings, prefixes, row, number)
    tied = settings.first(*(f"{prefix}tie_word_embeddings" for prefix in prefixes))
    if tied is not None and isinstance(tied.value, bool):
        yield Claim("model.tied", tied.value), tied
    said = settings.first(*(p + name for p in prefixes for name in ("torch_dtype", "dtype")))
    name = dtype_of(said.value) if said else None
    if said is not None and name:
        yield Claim("model.dtype", name), said
    yield from _kind(settings)
    yield from _positions(settings, prefixes)
    yield from _quantised(settings)
    kind = settings.get("model_type")
    if kind is not None:
        yield Claim("model.config", json_of(settings)), kind


def _kv_heads(
    settings: Settings, prefixes: list[str], heads: Setting, number: int
) -> Iterator[tuple[Claim, Setting]]:
    """Without a key for key/value heads each head has its own, one in all under multi_query."""
    names = [prefix + name for prefix in prefixes for name in SHAPE["model.kv_heads"]]
    if settings.first(*names) is None:
        shared = settings.value("multi_query") is True
        source = "no key for key/value heads"
        yield Claim("model.kv_heads", 1 if shared else number, 0, source, Origin.DERIVED), heads


def _kind(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    row = settings.get("architectures")
    name = (scalars.as_text(row.value) or "").lower() if row else ""
    vision = next(
        (r for r in settings if r.key.startswith(("vision_config.", "vision_tower"))), None
    )
    if vision is not None:
        yield Claim("model.kind", "vlm"), row or vision
    elif row is not None:
        kind = next((kind for mark, kind in KINDS if mark in name), None)
        if kind is not None:
            yield Claim("model.kind", kind), row
    path = settings.get("_name_or_path")
    if path is not None:
        yield from ((claim, path) for claim in meanings.model_name(path.value))


def _positions(settings: Settings, prefixes: list[str]) -> Iterator[tuple[Claim, Setting]]:
    """Read how tokens get their position, from the keys that only one way has."""
    for row in settings:
        key = row.key
        for prefix in prefixes:
            key = key.removeprefix(prefix)
        way = next((way for mark, way in POSITIONS if key.startswith(mark)), None)
        if key == "alibi" and row.value is False:
            way = None
        if key == "position_embedding_type":
            way = {"absolute": "absolute", "rope": "rope", "alibi": "alibi"}.get(str(row.value))
        if key == "model_type" and row.value in ABSOLUTE:
            way = "absolute"
        if way is not None and row.value is not None:
            yield Claim("model.positions", way), row
            return


def _quantised(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    method = settings.get("quantization_config.quant_method")
    for bits in ("4", "8"):
        row = settings.get(f"quantization_config.load_in_{bits}bit")
        if row is not None and row.value is True:
            yield Claim("quant.kind", f"bnb{bits}"), row
            return
    if method is not None:
        yield from ((claim, method) for claim in meanings.quantization(method.value))


NO_KEYS: Table = {}
DIALECT = Dialect("hub_config", None, NO_KEYS, matches, open_end, derived, common=False)
