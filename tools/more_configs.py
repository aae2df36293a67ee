"""Whole configs of models whose family has key names of its own, for tools/more_models.py."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
_OSS = {
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "vocab_size": 201088,
    "num_experts_per_tok": 4,
    "tie_word_embeddings": False,
    "sliding_window": 128,
}
_VISION_CROSS = {"model_type": "mllama_vision_model"}
_QWEN3_VISION = {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "num_heads": 16}
# name: architecture, kind, parameters, config
CONFIGURED: dict[str, tuple[str, str, int, Row]] = {
    "openai/gpt-oss-20b": (
        *("GptOssForCausalLM", "causal-lm", 20914757184),
        {**_OSS, "num_hidden_layers": 24, "num_local_experts": 32},
    ),
    "openai/gpt-oss-120b": (
        *("GptOssForCausalLM", "causal-lm", 116829156672),
        {**_OSS, "num_hidden_layers": 36, "num_local_experts": 128},
    ),
    "mosaicml/mpt-7b": (
        *("MptForCausalLM", "causal-lm", 6649286656),
        {"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50432},
    ),
    "bigcode/octocoder": (
        *("GPTBigCodeForCausalLM", "causal-lm", 15517456384),
        {
            "model_type": "gpt_bigcode",
            "n_embd": 6144,
            "n_layer": 40,
            "n_head": 48,
            "n_positions": 8192,
            "vocab_size": 49152,
            "multi_query": True,
        },
    ),
    "EleutherAI/gpt-neo-125M": (
        *("GPTNeoForCausalLM", "causal-lm", 125198592),
        {
            "model_type": "gpt_neo",
            "hidden_size": 768,
            "num_layers": 12,
            "num_heads": 12,
            "attention_types": [[["global", "local"], 6]],
            "vocab_size": 50257,
            "max_position_embeddings": 2048,
            "window_size": 256,
        },
    ),
    "meta-llama/Llama-3.2-11B-Vision": (
        *("MllamaForConditionalGeneration", "vlm", 10670220835),
        {
            "model_type": "mllama",
            "text_config": {
                "model_type": "mllama_text_model",
                "hidden_size": 4096,
                "intermediate_size": 14336,
                "num_hidden_layers": 40,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "vocab_size": 128256,
                "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38],
            },
            "vision_config": {**_VISION_CROSS, "image_size": 560},
            "image_token_index": 128256,
        },
    ),
    "meta-llama/Llama-3.2-90B-Vision": (
        *("MllamaForConditionalGeneration", "vlm", 88593355323),
        {
            "model_type": "mllama",
            "text_config": {
                "model_type": "mllama_text_model",
                "hidden_size": 8192,
                "intermediate_size": 28672,
                "num_hidden_layers": 100,
                "num_attention_heads": 64,
                "num_key_value_heads": 8,
                "vocab_size": 128256,
                "cross_attention_layers": list(range(3, 100, 5)),
            },
            "vision_config": {**_VISION_CROSS, "image_size": 560},
            "image_token_index": 128256,
        },
    ),
    "Qwen/Qwen3-VL-4B-Instruct": (
        *("Qwen3VLForConditionalGeneration", "vlm", 4437815808),
        {
            "model_type": "qwen3_vl",
            "text_config": {
                "model_type": "qwen3_vl_text",
                "hidden_size": 2560,
                "intermediate_size": 9728,
                "num_hidden_layers": 36,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "head_dim": 128,
                "vocab_size": 151936,
                "tie_word_embeddings": True,
                "rope_parameters": {
                    "rope_type": "default",
                    "rope_theta": 5e6,
                    "mrope_section": [24, 20, 20],
                    "mrope_interleaved": True,
                },
            },
            "vision_config": {
                **_QWEN3_VISION,
                "model_type": "qwen3_vl",
                "out_hidden_size": 2560,
                "deepstack_visual_indexes": [5, 11, 17],
            },
            "image_token_id": 151655,
            "tie_word_embeddings": True,
        },
    ),
}
