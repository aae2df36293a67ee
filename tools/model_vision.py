"""Configs of models with images, of torchvision and of diffusers, for tools/model_configs.py."""

from __future__ import annotations

from model_families import Row, plain

_SIGLIP = {
    "model_type": "siglip_vision_model",
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "image_size": 896,
    "patch_size": 14,
    "vision_use_head": False,
}


def _gemma3(row: Row) -> Row:
    text = plain(row, "gemma3_text") | {"sliding_window": 512, "sliding_window_pattern": 6}
    if row["kind"] != "vlm":
        return text
    text["sliding_window"] = 1024
    made = {"model_type": "gemma3", "text_config": text, "vision_config": _SIGLIP}
    token = {"image_token_index": 262144}
    return made | token | {"mm_tokens_per_image": 256, "tie_word_embeddings": True}


def _qwen_vl(row: Row) -> Row:
    newer = row["architecture"].startswith("Qwen2_5")
    kind = "qwen2_5_vl" if newer else "qwen2_vl"
    text = plain(row, f"{kind}_text")
    text["rope_parameters"] = {
        "rope_type": "default",
        "rope_theta": 1e6,
        "mrope_section": [16, 24, 24],
    }
    vision = {"model_type": kind, "depth": 32, "num_heads": 16, "patch_size": 14}
    if newer:
        vision |= {"hidden_size": 1280, "intermediate_size": 3420, "out_hidden_size": row["hidden"]}
    else:
        vision |= {"embed_dim": 1280, "mlp_ratio": 4, "hidden_size": row["hidden"]}
    made = {"model_type": kind, "text_config": text, "vision_config": vision}
    return made | {"image_token_id": 151655, "tie_word_embeddings": row["tied"]}


def _llava(row: Row) -> Row:
    vision = {
        "model_type": "clip_vision_model",
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "image_size": 336,
        "patch_size": 14,
        "projection_dim": 768,
    }
    made = {"model_type": "llava", "text_config": plain(row, "llama"), "vision_config": vision}
    token = {"image_token_index": 32000}
    return made | token | {"vision_feature_layer": -2, "image_seq_length": 576}


def _clip(row: Row) -> Row:
    large = "large" in row["name"]
    text, vision = (
        ((768, 3072, 12), (1024, 4096, 16)) if large else ((512, 2048, 8), (768, 3072, 12))
    )

    def tower(shape: tuple[int, ...], layers: int) -> Row:
        return {
            "hidden_size": shape[0],
            "intermediate_size": shape[1],
            "num_hidden_layers": layers,
            "num_attention_heads": shape[2],
        }

    size = {"image_size": 224, "patch_size": 14 if large else 32}
    return {
        "model_type": "clip",
        "projection_dim": text[0],
        "text_config": tower(text, 12) | {"projection_dim": text[0]},
        "vision_config": tower(vision, 24 if large else 12) | size | {"projection_dim": text[0]},
    }


def _torchvision(row: Row) -> Row:
    return {"library": "torchvision", "name": row["name"], "image_size": 224, "num_labels": 1000}


def _unet(row: Row) -> Row:
    made: Row = {"library": "diffusers", "class": row["architecture"]}
    if "xl" in row["name"]:
        return made | {
            "block_out_channels": [320, 640, 1280],
            "transformer_layers_per_block": [1, 2, 10],
            "attention_head_dim": [5, 10, 20],
            "cross_attention_dim": 2048,
            "sample_size": 128,
            "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
            "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
            "use_linear_projection": True,
            "addition_embed_type": "text_time",
            "addition_time_embed_dim": 256,
            "projection_class_embeddings_input_dim": 2816,
        }
    return made | {
        "block_out_channels": [320, 640, 1280, 1280],
        "attention_head_dim": 8,
        "cross_attention_dim": 768,
        "sample_size": 64,
    }


def _vae(row: Row) -> Row:
    return {
        "library": "diffusers",
        "class": row["architecture"],
        "block_out_channels": [128, 256, 512, 512],
        "layers_per_block": 2,
        "latent_channels": 4,
        "sample_size": 512,
        "down_block_types": ["DownEncoderBlock2D"] * 4,
        "up_block_types": ["UpDecoderBlock2D"] * 4,
    }


VISION = {
    "Gemma3ForCausalLM": _gemma3,
    "Gemma3ForConditionalGeneration": _gemma3,
    "Qwen2VLForConditionalGeneration": _qwen_vl,
    "Qwen2_5_VLForConditionalGeneration": _qwen_vl,
    "LlavaForConditionalGeneration": _llava,
    "CLIPModel": _clip,
    "ResNet": _torchvision,
    "VGG": _torchvision,
    "UNet2DConditionModel": _unet,
    "AutoencoderKL": _vae,
}
