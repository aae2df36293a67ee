"""Configs of newer and rarer decoders, for more_models.py.

Only what decides tensors is written, as the published config.json has it. Where a count of
parameters is published it is that one; else it is that of the built model.
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
Entry = tuple[str, str, int, Row]


def decoder(model_type: str, shape: tuple[int, ...], vocab: int, **more: object) -> Row:
    """Return a decoder of (width, inner width, layers, heads, heads of keys)."""
    width, inner, layers, heads, keys = shape
    return {
        "model_type": model_type,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": keys,
        "vocab_size": vocab,
        "tie_word_embeddings": False,
        **more,
    }


def opt(shape: tuple[int, ...]) -> Row:
    """Return an OPT of (width, layers, heads)."""
    width, layers, heads = shape
    return {
        "model_type": "opt",
        "hidden_size": width,
        "ffn_dim": 4 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "max_position_embeddings": 2048,
        "vocab_size": 50272,
        "word_embed_proj_dim": width,
    }


def _bloom(shape: tuple[int, ...]) -> Row:
    width, layers, heads = shape
    named = {"hidden_size": width, "n_layer": layers, "n_head": heads}
    return {"model_type": "bloom", **named, "vocab_size": 250880}


def _neo(shape: tuple[int, ...]) -> Row:
    width, layers, heads = shape
    return {
        "model_type": "gpt_neo",
        "hidden_size": width,
        "num_layers": layers,
        "num_heads": heads,
        "attention_types": [[["global", "local"], layers // 2]],
        "vocab_size": 50257,
        "max_position_embeddings": 2048,
        "window_size": 256,
    }


# name: architecture, kind, parameters, config
NEWER: dict[str, Entry] = {
    "facebook/opt-2.7b": ("OPTForCausalLM", "causal-lm", 2651596800, opt((2560, 32, 32))),
    "facebook/opt-30b": ("OPTForCausalLM", "causal-lm", 29974540288, opt((7168, 48, 56))),
    "facebook/opt-66b": ("OPTForCausalLM", "causal-lm", 65719701504, opt((9216, 64, 72))),
    "bigscience/bloom-1b1": ("BloomForCausalLM", "causal-lm", 1065314304, _bloom((1536, 24, 16))),
    "bigscience/bloom-3b": ("BloomForCausalLM", "causal-lm", 3002557440, _bloom((2560, 30, 32))),
    "EleutherAI/gpt-neo-1.3B": ("GPTNeoForCausalLM", "causal-lm", 1315575808, _neo((2048, 24, 16))),
    "EleutherAI/gpt-neo-2.7B": ("GPTNeoForCausalLM", "causal-lm", 2651307520, _neo((2560, 32, 20))),
    "tiiuae/falcon-rw-1b": (
        *("FalconForCausalLM", "causal-lm", 1311625216),
        {
            "model_type": "falcon",
            "hidden_size": 2048,
            "num_hidden_layers": 24,
            "num_attention_heads": 32,
            "vocab_size": 50304,
            "new_decoder_architecture": False,
            "multi_query": False,
            "parallel_attn": False,
            "bias": True,
            "alibi": True,
        },
    ),
    "google/gemma-3-270m": (
        *("Gemma3ForCausalLM", "causal-lm", 268098176),
        decoder(
            *("gemma3_text", (640, 2048, 18, 4, 1), 262144),
            head_dim=256,
            sliding_window=512,
            tie_word_embeddings=True,
        ),
    ),
    "allenai/OLMo-2-0425-1B": (
        *("Olmo2ForCausalLM", "causal-lm", 1484916736),
        decoder("olmo2", (2048, 8192, 16, 16, 16), 100352),
    ),
    "allenai/OLMo-2-1124-7B": (
        *("Olmo2ForCausalLM", "causal-lm", 7298617344),
        decoder("olmo2", (4096, 11008, 32, 32, 32), 100352),
    ),
    "allenai/OLMo-2-1124-13B": (
        *("Olmo2ForCausalLM", "causal-lm", 13716198400),
        decoder("olmo2", (5120, 13824, 40, 40, 40), 100352),
    ),
    "allenai/OLMoE-1B-7B-0924": (
        *("OlmoeForCausalLM", "causal-lm", 6919161856),
        decoder(
            *("olmoe", (2048, 1024, 16, 16, 16), 50304),
            num_experts=64,
            num_experts_per_tok=8,
        ),
    ),
    "Qwen/Qwen1.5-MoE-A2.7B": (
        *("Qwen2MoeForCausalLM", "causal-lm", 14315784192),
        decoder(
            *("qwen2_moe", (2048, 5632, 24, 16, 16), 151936),
            num_experts=60,
            num_experts_per_tok=4,
            moe_intermediate_size=1408,
            shared_expert_intermediate_size=5632,
        ),
    ),
    "ibm-granite/granite-3.1-2b-base": (
        *("GraniteForCausalLM", "causal-lm", 2533531648),
        decoder("granite", (2048, 8192, 40, 32, 8), 49155, tie_word_embeddings=True),
    ),
    "ibm-granite/granite-3.1-8b-base": (
        *("GraniteForCausalLM", "causal-lm", 8170848256),
        decoder("granite", (4096, 12800, 40, 32, 8), 49155, tie_word_embeddings=True),
    ),
    "CohereForAI/c4ai-command-r-v01": (
        *("CohereForCausalLM", "causal-lm", 34980831232),
        decoder("cohere", (8192, 22528, 40, 64, 64), 256000, tie_word_embeddings=True),
    ),
    "CohereForAI/aya-expanse-8b": (
        *("CohereForCausalLM", "causal-lm", 8028033024),
        decoder("cohere", (4096, 14336, 32, 32, 8), 256000, tie_word_embeddings=True),
    ),
    "swiss-ai/Apertus-8B-2509": (
        *("ApertusForCausalLM", "causal-lm", 8053338176),
        decoder("apertus", (4096, 21504, 32, 32, 8), 131072),
    ),
    "deepseek-ai/DeepSeek-V2": (
        *("DeepseekV2ForCausalLM", "causal-lm", 235741434880),
        decoder(
            *("deepseek_v2", (5120, 12288, 60, 128, 128), 102400),
            kv_lora_rank=512,
            q_lora_rank=1536,
            qk_nope_head_dim=128,
            qk_rope_head_dim=64,
            v_head_dim=128,
            n_routed_experts=160,
            num_experts_per_tok=6,
            n_shared_experts=2,
            moe_intermediate_size=1536,
            first_k_dense_replace=1,
            n_group=8,
            topk_group=3,
        ),
    ),
    "ai21labs/Jamba-v0.1": (
        *("JambaForCausalLM", "causal-lm", 51570323328),
        decoder(
            *("jamba", (4096, 14336, 32, 32, 8), 65536),
            num_experts=16,
            num_experts_per_tok=2,
            use_mamba_kernels=False,
        ),
    ),
    "LiquidAI/LFM2-350M": (
        *("Lfm2ForCausalLM", "causal-lm", 354483968),
        decoder(
            *("lfm2", (1024, 6656, 16, 16, 8), 65536),
            block_auto_adjust_ff_dim=True,
            block_multiple_of=256,
            block_ffn_dim_multiplier=1.0,
            full_attn_idxs=[2, 5, 8, 10, 12, 14],
            tie_word_embeddings=True,
        ),
    ),
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (
        *("NemotronHForCausalLM", "causal-lm", 31577937344),
        decoder(
            *("nemotron_h", (2688, 1856, 52, 32, 2), 131072),
            head_dim=128,
            hybrid_override_pattern="MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
            mamba_num_heads=64,
            mamba_head_dim=64,
            ssm_state_size=128,
            n_groups=8,
            n_routed_experts=128,
            num_experts_per_tok=6,
            moe_intermediate_size=1856,
            moe_shared_expert_intermediate_size=3712,
            n_shared_experts=1,
            mlp_hidden_act="relu2",
        ),
    ),
    "deepseek-ai/DeepSeek-V4-Flash": (
        *("DeepseekV4ForCausalLM", "causal-lm", 284325869015),
        decoder(
            *("deepseek_v4", (4096, 2048, 43, 64, 1), 129280),
            head_dim=512,
            q_lora_rank=1024,
            qk_rope_head_dim=64,
            n_routed_experts=256,
            num_experts_per_tok=6,
            n_shared_experts=1,
            moe_intermediate_size=2048,
            sliding_window=128,
        ),
    ),
    "Qwen/Qwen3.5-27B": (
        *("Qwen3_5ForCausalLM", "causal-lm", 26895998464),
        decoder(
            *("qwen3_5_text", (5120, 17408, 64, 24, 4), 248320),
            head_dim=256,
            linear_num_value_heads=48,
        ),
    ),
    "Qwen/Qwen3.5-9B": (
        *("Qwen3_5ForCausalLM", "causal-lm", 8953803264),
        decoder("qwen3_5_text", (4096, 12288, 32, 16, 4), 248320, head_dim=256),
    ),
    "Qwen/Qwen3.5-35B-A3B": (
        *("Qwen3_5MoeForCausalLM", "causal-lm", 34660610688),
        {
            **decoder("qwen3_5_moe_text", (2048, 0, 40, 16, 2), 248320, head_dim=256),
            "intermediate_size": None,
            "num_experts": 256,
            "num_experts_per_tok": 8,
            "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512,
        },
    ),
    "Qwen/Qwen3-Next-80B-A3B-Instruct": (
        *("Qwen3NextForCausalLM", "causal-lm", 79674391296),
        decoder(
            *("qwen3_next", (2048, 5632, 48, 16, 2), 151936),
            head_dim=256,
            num_experts=512,
            num_experts_per_tok=10,
            moe_intermediate_size=512,
            shared_expert_intermediate_size=512,
        ),
    ),
    "zai-org/GLM-4.7-Flash": (
        *("Glm4MoeLiteForCausalLM", "causal-lm", 29943390976),
        decoder(
            *("glm4_moe_lite", (2048, 10240, 47, 20, 20), 154880),
            kv_lora_rank=512,
            q_lora_rank=768,
            qk_nope_head_dim=192,
            qk_rope_head_dim=64,
            v_head_dim=256,
            n_routed_experts=64,
            num_experts_per_tok=4,
            n_shared_experts=1,
            moe_intermediate_size=1536,
        ),
    ),
    "mistralai/Mistral-Small-4-119B-2603": (
        *("Mistral4ForCausalLM", "causal-lm", 118972826624),
        decoder(
            *("mistral4", (4096, 12288, 36, 32, 32), 131072),
            kv_lora_rank=256,
            q_lora_rank=1024,
            qk_nope_head_dim=64,
            qk_rope_head_dim=64,
            v_head_dim=128,
            n_routed_experts=128,
            num_experts_per_tok=4,
            n_shared_experts=1,
            moe_intermediate_size=2048,
            first_k_dense_replace=0,
        ),
    ),
}
