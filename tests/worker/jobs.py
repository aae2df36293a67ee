"""Small jobs that run in a moment."""

from __future__ import annotations

from oomdoctor.model.job import Job, LoraSpec, ModelSpec, OptimizerSpec

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 3000,
    "max_position_embeddings": 512,
}
MODEL = ModelSpec(name="tiny", config=CONFIG, source="test")
JOB = Job(
    model=MODEL,
    batch=2,
    seq_len=32,
    dtype="fp32",
    optimizer=OptimizerSpec(implementation="for-loop"),
)
LORA = LoraSpec(rank=4, targets=("q_proj", "v_proj"))
EMBEDDING = 3000 * 64
LAYER = 64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128 + 2 * 64
PARAMETERS = 2 * EMBEDDING + 2 * LAYER + 64


def made_up(**config: object) -> ModelSpec:
    """Return a small model; `config` names its type and what is special to it."""
    return ModelSpec(name=str(config["model_type"]), config=config, source="test")


_ENCODER = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
BERT = made_up(model_type="bert", vocab_size=3000, **_ENCODER)
VIT = made_up(model_type="vit", image_size=32, patch_size=8, **_ENCODER)
RESNET = made_up(
    model_type="resnet", embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], image_size=32
)
T5 = made_up(
    model_type="t5", d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=3000
)
BART = made_up(
    model_type="bart",
    d_model=64,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=128,
    decoder_ffn_dim=128,
    vocab_size=3000,
    max_position_embeddings=256,
)
TEXT = {
    **{name: value for name, value in CONFIG.items() if name != "model_type"},
    "head_dim": 16,
}
_TURNS = {"rope_type": "default", "mrope_section": [2, 3, 3]}
QWEN_VL = made_up(
    model_type="qwen2_vl",
    image_token_id=2999,
    vision_start_token_id=2998,
    text_config={"model_type": "qwen2_vl_text", **TEXT, "rope_parameters": _TURNS},
    vision_config={"depth": 2, "embed_dim": 64, "num_heads": 4, "hidden_size": 64, "mlp_ratio": 2},
)
TOWER = {**_ENCODER, "image_size": 56, "patch_size": 14}
LLAVA = made_up(
    model_type="llava",
    image_token_index=2999,
    image_seq_length=16,
    text_config={"model_type": "llama", **TEXT},
    vision_config={"model_type": "clip_vision_model", "projection_dim": 64, **TOWER},
)
GEMMA_3 = made_up(
    model_type="gemma3",
    image_token_index=2999,
    mm_tokens_per_image=4,
    text_config={"model_type": "gemma3_text", **TEXT},
    vision_config={"model_type": "siglip_vision_model", **TOWER},
)
_EXPERTS = {**TEXT, "num_experts_per_tok": 2}
MIXTRAL = made_up(model_type="mixtral", num_local_experts=4, **_EXPERTS)
QWEN_MOE = made_up(model_type="qwen3_moe", num_experts=8, moe_intermediate_size=32, **_EXPERTS)
GPT_OSS = made_up(
    model_type="gpt_oss",
    num_local_experts=4,
    layer_types=["sliding_attention", "full_attention"],
    **_EXPERTS,
)
