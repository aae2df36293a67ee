"""The shape of a network out of its config.json: what decides sizes, for every family at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.memory.formula_families import FAMILIES, LIKE_LLAMA, TRANSLATORS
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Widths and kinds of the parts of a network of equal layers.

    `norm` is rms, wide (its weight is applied in fp32), gemma (fp32 throughout), cohere (LayerNorm
    written in Python) or layer; `joins` says that rotated and other columns are put together, so
    that attention's output has to be copied; `act` says what an activation
    saves: its input, its output, or five values where it is written in Python. `post_norms` are
    norms behind attention and feed-forward as well, `first_norms` those before them. `experts`
    of `expert_width` stand in every `expert_step`-th layer after the first `dense` ones.
    `encoder` layers come before the decoder's in an encoder-decoder. `broadcasts` says that shared
    keys reach SDPA as they are, which takes its kernels from it.
    """

    kind: str = "decoder"
    layers: int = 1
    hidden: int = 1
    heads: int = 1
    kv_heads: int = 1
    head_dim: int = 1
    width: int = 1
    vocab: int = 0
    tied: bool = False
    norm: str = "rms"
    gated: bool = True
    act: str = "input"
    parallel: bool = False
    one_norm: bool = False
    joins: bool = False
    qk_norm: str = ""
    first_norms: bool = True
    post_norms: bool = False
    positions: str = "rope"
    places: int = 0
    bias: bool = False
    qkv_bias: bool = False
    fused_qkv: bool = False
    fused_gate: bool = False
    dropout: float = 0.0
    attention_dropout: float = 0.0
    experts: int = 0
    top_k: int = 1
    expert_width: int = 0
    shared_width: int = 0
    dense: int = 0
    expert_step: int = 1
    query_rank: int = 0
    key_rank: int = 0
    rope_dim: int = 0
    value_dim: int = 0
    softcap: bool = False
    broadcasts: bool = False
    final_softcap: bool = False
    embedding: int = 0
    encoder: int = 0
    encoder_tokens: int = 0
    patch: int = 0
    image: int = 0
    pooler: bool = False

    @property
    def queries(self) -> int:
        """Return the width of all queries together."""
        return self.heads * self.head_dim

    @property
    def keys(self) -> int:
        """Return the width of all keys together."""
        return self.kv_heads * self.head_dim


_NAMES = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "dim", "embed_dim"),
    "heads": (
        *("num_attention_heads", "n_head", "n_heads", "num_heads"),
        "decoder_attention_heads",
    ),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv"),
    "head_dim": ("head_dim", "d_kv"),
    "width": (
        *("intermediate_size", "n_inner", "ffn_dim", "d_ff", "hidden_dim", "decoder_ffn_dim"),
        "ffn_hidden_size",
    ),
    "vocab": ("vocab_size",),
    "places": ("max_position_embeddings", "n_positions", "max_target_positions"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "top_k": ("num_experts_per_tok", "num_experts_per_token"),
}
_SHARES = {
    "dropout": ("resid_pdrop", "hidden_dropout_prob", "residual_dropout", "dropout_rate"),
    "attention_dropout": ("attn_pdrop", "attention_probs_dropout_prob"),
}
_ACT_KEYS = ("hidden_act", "activation_function", "hidden_activation")
_ACTS = {
    **dict.fromkeys(("silu", "swish", "gelu", "gelu_pytorch_tanh"), "input"),
    "relu": "output",
    "relu2": "output",
    "gelu_new": "python",
    "gelu_fast": "python",
}
_INSIDE = ("text_config", "llm_config", "language_config")
_ACT_KEYS = ("hidden_act", "hidden_activation", "activation_function")
_ACTS = {
    **dict.fromkeys(("gelu", "gelu_pytorch_tanh", "silu", "swish", "mish", "hardswish"), "input"),
    **dict.fromkeys(("relu", "sigmoid", "tanh"), "output"),
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_accurate", "quick_gelu"), "python"),
}


def text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a config that describes the network for text."""
    inner = next((config[name] for name in _INSIDE if isinstance(config.get(name), dict)), None)
    return config if inner is None else {**inner, "outer_type": config.get("model_type")}


def shape_of(config: Mapping[str, Any]) -> Shape:
    """Return the shape of the network for text (of images, where there is no other)."""
    text = text_part(config)
    kind = str(text.get("model_type") or config.get("model_type") or "")
    family = FAMILIES.get(kind) or FAMILIES.get(kind.removesuffix("_text"), {})
    found = {name: _number(text, names) for name, names in _NAMES.items()}
    given: dict[str, Any] = {**family, **{k: v for k, v in found.items() if v is not None}}
    heads = given.get("heads", 1)
    given.setdefault("kv_heads", 1 if text.get("multi_query") else heads)
    given.setdefault("head_dim", given.get("hidden", 1) // heads)
    given.setdefault("width", 4 * given.get("hidden", 1))
    if isinstance(text.get("tie_word_embeddings"), bool):
        given["tied"] = text["tie_word_embeddings"]
    for key, names in _SHARES.items():
        shares = [v for v in map(text.get, names) if isinstance(v, (int, float))]
        given |= {key: shares[0]} if shares else {}
    named = next((text[name] for name in _ACT_KEYS if isinstance(text.get(name), str)), "")
    given |= {"act": _ACTS[named]} if named in _ACTS else {}
    if text.get("attention_bias") is True:
        given["qkv_bias"] = True
    named = next((_ACTS[a] for key in _ACT_KEYS if (a := text.get(key)) in _ACTS), None)
    if named is not None:
        given["act"] = named
    return _special(Shape(**given), kind, text)


def stands_in(config: Mapping[str, Any]) -> bool:
    """Say whether a family is not known here, so that a gated decoder stands in for it."""
    kind = str(text_part(config).get("model_type") or config.get("model_type"))
    return not {kind, kind.removesuffix("_text")} & {*FAMILIES, *LIKE_LLAMA}


def _number(text: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    values = (text.get(name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool)), None)


def _special(shape: Shape, kind: str, text: Mapping[str, Any]) -> Shape:
    """Add what single families say by keys of their own."""
    made: dict[str, Any] = {}
    if shape.experts:
        made["expert_width"] = text.get("moe_intermediate_size") or shape.width
        shared = text.get("n_shared_experts") or 0
        made["shared_width"] = (
            text.get("shared_expert_intermediate_size") or shared * made["expert_width"]
        )
        made["dense"] = text.get("first_k_dense_replace") or 0
        made["expert_step"] = text.get("interleave_moe_layer_step") or 1
    if kind.startswith("llama4"):
        made |= {"shared_width": shape.width, "width": text.get("intermediate_size_mlp", 0)}
        made["top_k"] = max(1, shape.experts)  # every expert sees every token
    if text.get("kv_lora_rank"):
        rope = text.get("qk_rope_head_dim", 64)
        made |= {
            "query_rank": text.get("q_lora_rank") or 0,
            "key_rank": text["kv_lora_rank"],
            "rope_dim": rope,
            "head_dim": text.get("qk_nope_head_dim", 128) + rope,
            "value_dim": text.get("v_head_dim", 128),
            "kv_heads": shape.heads,
        }
    if kind in ("t5", "mt5", "umt5", "longt5"):
        made["encoder"] = shape.layers
        made["layers"] = text.get("num_decoder_layers") or shape.layers
        gated = str(text.get("feed_forward_proj", "relu")).startswith("gated")
        made |= {"gated": gated, "act": "python" if gated else "output", "tied": True}
    if kind in TRANSLATORS:
        made |= {"encoder": text.get("encoder_layers") or shape.layers, "tied": True}
    if kind == "whisper":
        made["encoder"] = text.get("encoder_layers") or shape.layers
        made |= {"encoder_tokens": text.get("max_source_positions") or 1500, "tied": True}
    if kind == "opt" and text.get("word_embed_proj_dim"):
        made["embedding"] = text["word_embed_proj_dim"]
    if kind == "falcon" and text.get("new_decoder_architecture"):
        made |= {"one_norm": False, "broadcasts": False}
    if kind in ("vit", "dinov2", "beit"):
        patch, image = text.get("patch_size") or 16, text.get("image_size") or 224
        made |= {"patch": patch, "image": image, "places": (image // patch) ** 2 + 1}
    return replace(shape, **made)
