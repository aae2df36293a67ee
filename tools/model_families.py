"""Configs of families whose config.json has names of its own, for tools/model_configs.py."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def plain(row: Row, model_type: str) -> Row:
    """Return the config of a family with the usual names."""
    made = {
        "model_type": model_type,
        "hidden_size": row["hidden"],
        "intermediate_size": row.get("intermediate"),
        "num_hidden_layers": row["layers"],
        "num_attention_heads": row["heads"],
        "num_key_value_heads": row.get("kv_heads"),
        "head_dim": row.get("head_dim"),
        "vocab_size": row.get("vocab"),
        "max_position_embeddings": row.get("max_positions"),
        "tie_word_embeddings": row.get("tied", False),
    }
    if model_type in ("bert", "roberta", "deberta-v2", "vit", "gpt_neox", "phi"):
        del made["head_dim"]
        if model_type != "phi":
            del made["num_key_value_heads"]
    return made | _FAMILY.get(model_type, {}) | _own(row)


_FAMILY: dict[str, Row] = {
    "roberta": {"type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "phi": {"partial_rotary_factor": 0.4},
    "mixtral": {"sliding_window": None},
    "glm": {"attention_bias": True, "partial_rotary_factor": 0.5},
    "gemma": {"hidden_act": "gelu_pytorch_tanh"},
    "gemma2": {
        "sliding_window": 4096,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
    },
    "vit": {"image_size": 224, "patch_size": 16, "num_labels": 1000},
    "deberta-v2": {
        "position_buckets": 256,
        "relative_attention": True,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "type_vocab_size": 0,
        "position_biased_input": False,
        "max_relative_positions": -1,
    },
    "seed_oss": {"attention_bias": True},
    "glm4": {"partial_rotary_factor": 0.5},
    "stablelm": {"use_qkv_bias": True, "partial_rotary_factor": 0.25},
    "starcoder2": {"sliding_window": 4096},
    "gpt_neox": {"use_parallel_residual": True, "rotary_pct": 0.25},
}


def _own(row: Row) -> Row:
    """Return what a single model has beside its family's keys."""
    name, made = row["name"], {}
    if row.get("experts") and row["architecture"] == "MixtralForCausalLM":
        made = {"num_local_experts": row["experts"]}
    if row["architecture"] == "Qwen3MoeForCausalLM":
        made = {"num_experts": row["experts"], "moe_intermediate_size": row["moe_intermediate"]}
    if made:
        made["num_experts_per_tok"] = row["experts_per_token"]
    if name == "mistralai/Mistral-7B-v0.1":
        made["sliding_window"] = 4096
    elif row["architecture"] == "MistralForCausalLM":
        made["sliding_window"] = None
    if name == "THUDM/chatglm2-6b":
        made["pad_token_id"] = 0
    if name == "internlm/internlm-7b":
        made["attention_bias"] = True
    if name == "microsoft/phi-1_5":
        made["partial_rotary_factor"] = 0.5  # its heads are 64 wide, those of phi-2 80
    if name == "microsoft/Phi-4-mini-instruct":
        made["partial_rotary_factor"] = 0.75
    return made


def _gpt2(row: Row) -> Row:
    made = {"model_type": "gpt2", "n_embd": row["hidden"], "n_layer": row["layers"]}
    return made | {
        "n_head": row["heads"],
        "n_positions": row["max_positions"],
        "vocab_size": row["vocab"],
    }


def _gptj(row: Row) -> Row:
    return _gpt2(row) | {"model_type": "gptj", "rotary_dim": 64, "tie_word_embeddings": False}


def _opt(row: Row) -> Row:
    made = {
        "model_type": "opt",
        "hidden_size": row["hidden"],
        "ffn_dim": row["intermediate"],
        "num_hidden_layers": row["layers"],
        "num_attention_heads": row["heads"],
        "max_position_embeddings": row["max_positions"],
        "vocab_size": row["vocab"],
        "word_embed_proj_dim": row["hidden"],
    }
    small = {"word_embed_proj_dim": 512, "do_layer_norm_before": False}
    return made | (small if row["name"] == "facebook/opt-350m" else {})


def _bloom(row: Row) -> Row:
    made = {"model_type": "bloom", "hidden_size": row["hidden"], "n_layer": row["layers"]}
    return made | {"n_head": row["heads"], "vocab_size": row["vocab"]}


def _falcon(row: Row) -> Row:
    newer = row["kv_heads"] > 1
    return {
        "model_type": "falcon",
        "hidden_size": row["hidden"],
        "num_hidden_layers": row["layers"],
        "num_attention_heads": row["heads"],
        "num_kv_heads": row["kv_heads"] if newer else None,
        "vocab_size": row["vocab"],
        "new_decoder_architecture": newer,
        "multi_query": not newer,
        "parallel_attn": True,
        "bias": False,
        "alibi": False,
    }


def _t5(row: Row) -> Row:
    gated = row["name"].startswith("google/flan")
    return {
        "model_type": "t5",
        "d_model": row["hidden"],
        "d_ff": row["intermediate"],
        "d_kv": row["head_dim"],
        "num_heads": row["heads"],
        "num_layers": row["layers"],
        "num_decoder_layers": row["decoder_layers"],
        "vocab_size": row["vocab"],
        "feed_forward_proj": "gated-gelu" if gated else "relu",
        "tie_word_embeddings": row["tied"],
    }


def _whisper(row: Row) -> Row:
    return {
        "model_type": "whisper",
        "d_model": row["hidden"],
        "encoder_layers": row["layers"],
        "decoder_layers": row["decoder_layers"],
        "encoder_attention_heads": row["heads"],
        "decoder_attention_heads": row["heads"],
        "encoder_ffn_dim": row["intermediate"],
        "decoder_ffn_dim": row["intermediate"],
        "num_mel_bins": 128 if "large" in row["name"] else 80,
        "vocab_size": row["vocab"],
        "max_source_positions": 1500,
        "max_target_positions": row["max_positions"],
    }


def _mla(row: Row) -> Row:
    third = row["architecture"].startswith("DeepseekV3")
    made = plain(row, "deepseek_v3" if third else "deepseek_v2")
    del made["head_dim"]
    return made | {
        "kv_lora_rank": 512,
        "q_lora_rank": 1536 if third else None,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_routed_experts": row["experts"],
        "num_experts_per_tok": row["experts_per_token"],
        "n_shared_experts": 1 if third else 2,
        "moe_intermediate_size": row["moe_intermediate"],
        "first_k_dense_replace": 3 if third else 1,
        "n_group": 8 if third else 1,
        "topk_group": 4 if third else 1,
    }


def _llama4(row: Row) -> Row:
    step = 2 if row["experts"] > 16 else 1
    return plain(row, "llama4_text") | {
        "intermediate_size_mlp": 2 * row["intermediate"],
        "num_local_experts": row["experts"],
        "num_experts_per_tok": row["experts_per_token"],
        "interleave_moe_layer_step": step,
    }


def _distilbert(row: Row) -> Row:
    made = {"model_type": "distilbert", "dim": row["hidden"], "n_layers": row["layers"]}
    return made | {
        "n_heads": row["heads"],
        "hidden_dim": row["intermediate"],
        "vocab_size": row["vocab"],
    }


SPECIAL = {
    "GPT2LMHeadModel": _gpt2,
    "GPTJForCausalLM": _gptj,
    "OPTForCausalLM": _opt,
    "BloomForCausalLM": _bloom,
    "FalconForCausalLM": _falcon,
    "T5ForConditionalGeneration": _t5,
    "WhisperForConditionalGeneration": _whisper,
    "DeepseekV2ForCausalLM": _mla,
    "DeepseekV3ForCausalLM": _mla,
    "Llama4ForCausalLM": _llama4,
    "DistilBertModel": _distilbert,
}
