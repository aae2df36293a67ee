"""Configs of models of text and pictures, for more_models.py.

Only what decides tensors is written, as the published config.json has it. Where a count of
parameters is published it is that one; else it is that of the built model.
"""

from __future__ import annotations

from newer_configs import Entry, Row, decoder, opt


def _vision(model_type: str, shape: tuple[int, ...], **more: object) -> Row:
    width, inner, layers, heads = shape
    return {
        "model_type": model_type,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        **more,
    }


def _qwen3_vl(model_type: str, text: Row, vision: tuple[int, ...], out: int, *, tied: bool) -> Row:
    depth, width, inner = vision
    turns = {
        "rope_type": "default",
        "rope_theta": 5e6,
        "mrope_section": [24, 20, 20],
        "mrope_interleaved": True,
    }
    seen = [5, 11, 17] if depth == 24 else [8, 16, 24]
    return {
        "model_type": model_type,
        "text_config": {**text, "tie_word_embeddings": tied, "rope_parameters": turns},
        "vision_config": {
            "model_type": model_type,
            "depth": depth,
            "hidden_size": width,
            "intermediate_size": inner,
            "num_heads": 16,
            "out_hidden_size": out,
            "deepstack_visual_indexes": seen,
        },
        "image_token_id": 151655,
        "tie_word_embeddings": tied,
    }


_PIXTRAL = _vision("pixtral", (1024, 4096, 24, 16), head_dim=64, patch_size=16, image_size=1024)
_SIGLIP = _vision(
    *("siglip_vision_model", (1152, 4304, 27, 16)),
    patch_size=14,
    image_size=224,
    vision_use_head=False,
)
_CLIP = _vision(
    *("clip_vision_model", (1024, 4096, 24, 16)),
    image_size=336,
    patch_size=14,
    projection_dim=768,
    vocab_size=32000,
)
_QWEN3 = {"head_dim": 128}
# name: architecture, kind, parameters, config
SEEING: dict[str, Entry] = {
    "zai-org/GLM-4.6V-Flash": (
        *("Glm46VForConditionalGeneration", "vlm", 10292777472),
        {
            "model_type": "glm46v",
            "text_config": decoder(
                *("glm4v_text", (4096, 13696, 40, 32, 2), 151552),
                rope_parameters={
                    "rope_type": "default",
                    "rope_theta": 1e4,
                    "partial_rotary_factor": 0.5,
                    "mrope_section": [8, 12, 12],
                },
            ),
            "vision_config": {
                "model_type": "glm4v_vision",
                "depth": 24,
                "hidden_size": 1536,
                "num_heads": 12,
                "patch_size": 14,
                "spatial_merge_size": 2,
                "temporal_patch_size": 2,
                "out_hidden_size": 4096,
                "intermediate_size": 13696,
            },
            "image_token_id": 151343,
        },
    ),
    "Qwen/Qwen3-VL-2B-Instruct": (
        *("Qwen3VLForConditionalGeneration", "vlm", 2127532032),
        _qwen3_vl(
            "qwen3_vl",
            decoder("qwen3_vl_text", (2048, 6144, 28, 16, 8), 151936, **_QWEN3),
            *((24, 1024, 4096), 2048),
            tied=True,
        ),
    ),
    "Qwen/Qwen3-VL-8B-Instruct": (
        *("Qwen3VLForConditionalGeneration", "vlm", 8767123696),
        _qwen3_vl(
            "qwen3_vl",
            decoder("qwen3_vl_text", (4096, 12288, 36, 32, 8), 151936, **_QWEN3),
            *((27, 1152, 4304), 4096),
            tied=False,
        ),
    ),
    "Qwen/Qwen3-VL-30B-A3B-Instruct": (
        *("Qwen3VLMoeForConditionalGeneration", "vlm", 31070754032),
        _qwen3_vl(
            "qwen3_vl_moe",
            decoder(
                *("qwen3_vl_moe_text", (2048, 6144, 48, 32, 4), 151936),
                num_experts=128,
                num_experts_per_tok=8,
                moe_intermediate_size=768,
                **_QWEN3,
            ),
            *((27, 1152, 4304), 2048),
            tied=False,
        ),
    ),
    "mistral-community/pixtral-12b": (
        *("LlavaForConditionalGeneration", "vlm", 12682739712),
        {
            "model_type": "llava",
            "text_config": decoder(
                "mistral", (5120, 14336, 40, 32, 8), 131072, head_dim=128, sliding_window=None
            ),
            "vision_config": _PIXTRAL,
            "vision_feature_layer": -1,
            "vision_feature_select_strategy": "full",
            "multimodal_projector_bias": True,
            "image_token_index": 10,
        },
    ),
    "mistralai/Mistral-Small-3.1-24B-Base-2503": (
        *("Mistral3ForConditionalGeneration", "vlm", 24011361280),
        {
            "model_type": "mistral3",
            "text_config": decoder(
                "mistral", (5120, 32768, 40, 32, 8), 131072, head_dim=128, sliding_window=None
            ),
            "vision_config": {**_PIXTRAL, "patch_size": 14, "image_size": 1540},
            "spatial_merge_size": 2,
            "vision_feature_layer": -1,
            "multimodal_projector_bias": False,
            "image_token_index": 10,
            "tie_word_embeddings": False,
        },
    ),
    "google/paligemma-3b-pt-224": (
        *("PaliGemmaForConditionalGeneration", "vlm", 2923466480),
        {
            "model_type": "paligemma",
            "text_config": decoder(
                "gemma", (2048, 16384, 18, 8, 1), 257216, head_dim=256, tie_word_embeddings=True
            ),
            "vision_config": {**_SIGLIP, "projection_dim": 2048},
            "projection_dim": 2048,
            "image_token_index": 257152,
        },
    ),
    "llava-hf/llava-v1.6-mistral-7b-hf": (
        *("LlavaNextForConditionalGeneration", "vlm", 7566747648),
        {
            "model_type": "llava_next",
            "text_config": decoder("mistral", (4096, 14336, 32, 32, 8), 32064, sliding_window=None),
            "vision_config": _CLIP,
            "image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
            "vision_feature_layer": -2,
            "image_token_index": 32000,
        },
    ),
    "HuggingFaceM4/idefics2-8b": (
        *("Idefics2ForConditionalGeneration", "vlm", 8402768112),
        {
            "model_type": "idefics2",
            "text_config": decoder(
                "mistral", (4096, 14336, 32, 32, 8), 32003, sliding_window=4096, pad_token_id=0
            ),
            "vision_config": _vision(
                "idefics2_vision", (1152, 4304, 27, 16), image_size=980, patch_size=14
            ),
            "perceiver_config": {"model_type": "idefics2_perceiver", "hidden_size": 4096},
            "image_token_id": 32001,
        },
    ),
    "HuggingFaceTB/SmolVLM-Instruct": (
        *("Idefics3ForConditionalGeneration", "vlm", 2246272880),
        {
            "model_type": "idefics3",
            "text_config": decoder("llama", (2048, 8192, 24, 32, 32), 49155, pad_token_id=2),
            "vision_config": _vision(
                "idefics3_vision", (1152, 4304, 27, 16), image_size=384, patch_size=14
            ),
            "scale_factor": 3,
            "image_token_id": 49153,
        },
    ),
    "OpenGVLab/InternVL3-1B-hf": (
        *("InternVLForConditionalGeneration", "vlm", 938193024),
        {
            "model_type": "internvl",
            "text_config": decoder("qwen2", (896, 4864, 24, 14, 2), 151674),
            "vision_config": {
                **_vision("internvl_vision", (1024, 4096, 24, 16)),
                "image_size": [448, 448],
                "patch_size": [14, 14],
                "attention_bias": True,
            },
            "image_seq_length": 256,
            "image_token_id": 151667,
            "tie_word_embeddings": False,
        },
    ),
    "Salesforce/blip2-opt-2.7b": (
        *("Blip2ForConditionalGeneration", "vlm", 3744679936),
        {
            "model_type": "blip-2",
            "text_config": opt((2560, 32, 32)),
            "vision_config": {"model_type": "blip_2_vision_model"},
            "qformer_config": {"model_type": "blip_2_qformer", "vocab_size": 30522},
            "num_query_tokens": 32,
            "image_token_index": 50265,
        },
    ),
}
