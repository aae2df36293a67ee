"""What families of networks have of their own, by the modeling files of transformers 5.24.0.

A key is the model type of a config.json (without `_text`); values are fields of a Shape. A family
that is in neither table is counted as a gated decoder with RMSNorm and rotary positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_GPT = {
    "norm": "layer",
    "gated": False,
    "bias": True,
    "qkv_bias": True,
    "fused_qkv": True,
}
_BERT = {
    **_GPT,
    "kind": "encoder",
    "fused_qkv": False,
    "positions": "learned",
    "first_norms": False,
    "post_norms": True,
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "tied": True,
    "pooler": True,
}
_PICTURES = {**_GPT, "kind": "vision", "positions": "learned", "fused_qkv": False, "vocab": 0}
TRANSLATORS = ("bart", "mbart", "m2m_100", "pegasus", "marian")
_TRANSLATOR = {
    **_GPT,
    "kind": "seq2seq",
    "positions": "learned",
    "fused_qkv": False,
    "dropout": 0.1,
    "tied": True,
}
FAMILIES: Mapping[str, dict[str, Any]] = {
    "gpt2": {
        **_GPT,
        "act": "python",
        "positions": "learned",
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "tied": True,
    },
    "gpt_bigcode": {
        **_GPT,
        "positions": "learned",
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "tied": True,
    },
    "gpt_neo": {**_GPT, "act": "python", "positions": "learned", "fused_qkv": False, "tied": True},
    "gptj": {**_GPT, "act": "python", "parallel": True, "one_norm": True, "fused_qkv": False},
    "opt": {
        **_GPT,
        "act": "output",
        "positions": "learned",
        "dropout": 0.1,
        "fused_qkv": False,
        "tied": True,
    },
    "bloom": {**_GPT, "positions": "alibi", "tied": True},
    "mpt": {**_GPT, "positions": "alibi", "bias": False, "qkv_bias": False, "tied": True},
    "falcon": {
        **_GPT,
        "parallel": True,
        "one_norm": True,
        "bias": False,
        "qkv_bias": False,
        "tied": True,
        "broadcasts": True,
    },
    "gpt_neox": {**_GPT, "parallel": True, "joins": True},
    "phi": {
        **_GPT,
        "act": "python",
        "parallel": True,
        "one_norm": True,
        "fused_qkv": False,
        "joins": True,
    },
    "starcoder2": {**_GPT, "fused_qkv": False},
    "stablelm": {"norm": "layer", "joins": True},
    "nemotron": {"norm": "layer", "gated": False, "act": "output", "joins": True},
    "phi3": {"fused_qkv": True, "fused_gate": True, "joins": True},
    "glm": {"fused_gate": True, "joins": True},
    "glm4": {"fused_gate": True, "post_norms": True, "joins": True},
    "cohere": {"norm": "cohere", "parallel": True, "one_norm": True},
    "cohere2": {"norm": "cohere", "parallel": True, "one_norm": True, "tied": True},
    "qwen2": {"qkv_bias": True},
    "qwen2_moe": {"qkv_bias": True},
    "qwen2_vl": {"qkv_bias": True},
    "qwen2_5_vl": {"qkv_bias": True},
    "qwen3": {"qk_norm": "head"},
    "qwen3_moe": {"qk_norm": "head"},
    "qwen3_vl": {"qk_norm": "head"},
    "gemma": {"norm": "gemma", "tied": True},
    "gemma2": {"norm": "gemma", "post_norms": True, "softcap": True, "final_softcap": True},
    "gemma3": {"norm": "gemma", "post_norms": True, "qk_norm": "head", "tied": True},
    "olmo2": {"norm": "wide", "first_norms": False, "post_norms": True, "qk_norm": "whole"},
    "olmo3": {"norm": "wide", "first_norms": False, "post_norms": True, "qk_norm": "whole"},
    "gpt_oss": {"norm": "wide", "qkv_bias": True, "bias": True},
    "llama4": {"qk_norm": "head"},
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "distilbert": {**_BERT, "pooler": False},
    "electra": _BERT,
    "deberta-v2": {**_BERT, "positions": "relative", "pooler": False},
    "vit": _PICTURES,
    "t5": {"kind": "seq2seq", "act": "output", "positions": "relative", "dropout": 0.1},
    "mt5": {"kind": "seq2seq", "positions": "relative", "dropout": 0.1},
    "longt5": {"kind": "seq2seq", "positions": "relative", "dropout": 0.1},
    "bart": {**_TRANSLATOR, "first_norms": False, "post_norms": True},
    **dict.fromkeys(("mbart", "m2m_100", "pegasus"), _TRANSLATOR),
    "marian": {**_TRANSLATOR, "first_norms": False, "post_norms": True},
    "mpnet": _BERT,
    "modernbert": {
        "kind": "encoder",
        "norm": "layer",
        "fused_qkv": True,
        "fused_gate": True,
        "tied": True,
    },
    "dinov2": _PICTURES,
    "beit": _PICTURES,
    "whisper": {**_GPT, "kind": "seq2seq", "positions": "learned", "fused_qkv": False},
}
LIKE_LLAMA = (
    *("llama", "mistral", "mixtral", "smollm3", "seed_oss", "deepseek_v2", "deepseek_v3", "cwm"),
    *("ministral", "mllama_text_model", "exaone4", "arcee", "helium", "granite", "olmoe"),
)
