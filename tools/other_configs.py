"""Configs of translators, encoders, networks of pictures and newer families, for more_models.py.

Only what decides tensors is written, as the published config.json has it. Where a count of
parameters is published it is that one; else it is that of the built model.
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
Entry = tuple[str, str, int, Row]


def _translator(model_type: str, shape: tuple[int, ...], vocab: int, **more: object) -> Row:
    width, layers, heads, inner, places = shape
    return {
        "model_type": model_type,
        "d_model": width,
        "encoder_layers": layers,
        "decoder_layers": layers,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": inner,
        "decoder_ffn_dim": inner,
        "max_position_embeddings": places,
        "vocab_size": vocab,
        **more,
    }


def _encoder(model_type: str, shape: tuple[int, ...], vocab: int, **more: object) -> Row:
    width, layers, heads, inner = shape
    return {
        "model_type": model_type,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "vocab_size": vocab,
        **more,
    }


def _t5(model_type: str, shape: tuple[int, ...], vocab: int, **more: object) -> Row:
    width, inner, head, heads, layers = shape
    return {
        "model_type": model_type,
        "d_model": width,
        "d_ff": inner,
        "d_kv": head,
        "num_heads": heads,
        "num_layers": layers,
        "num_decoder_layers": layers,
        "vocab_size": vocab,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
        **more,
    }


_XLM = {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1}
_DEBERTA = {
    "position_buckets": 256,
    "relative_attention": True,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "type_vocab_size": 0,
    "position_biased_input": False,
    "max_relative_positions": -1,
    "max_position_embeddings": 512,
}
_PICTURE = {"image_size": 224, "patch_size": 16}
_LARGE = (1024, 12, 16, 4096, 1024)
# name: architecture, kind, parameters, config
OTHERS: dict[str, Entry] = {
    "facebook/bart-base": (
        *("BartForConditionalGeneration", "seq2seq", 139420416),
        _translator("bart", (768, 6, 12, 3072, 1024), 50265),
    ),
    "facebook/bart-large": (
        *("BartForConditionalGeneration", "seq2seq", 406291456),
        _translator("bart", _LARGE, 50265),
    ),
    "facebook/mbart-large-50": (
        *("MBartForConditionalGeneration", "seq2seq", 610879488),
        _translator("mbart", _LARGE, 250054, scale_embedding=True),
    ),
    "facebook/m2m100_418M": (
        *("M2M100ForConditionalGeneration", "seq2seq", 483905536),
        _translator("m2m_100", _LARGE, 128112, scale_embedding=True),
    ),
    "facebook/nllb-200-distilled-600M": (
        *("M2M100ForConditionalGeneration", "seq2seq", 615073792),
        _translator("m2m_100", _LARGE, 256206, scale_embedding=True),
    ),
    "google/pegasus-xsum": (
        *("PegasusForConditionalGeneration", "seq2seq", 569748480),
        _translator("pegasus", (1024, 16, 16, 4096, 512), 96103, scale_embedding=True),
    ),
    "Helsinki-NLP/opus-mt-en-de": (
        *("MarianMTModel", "seq2seq", 74410496),
        _translator("marian", (512, 6, 8, 2048, 512), 58101, pad_token_id=58100),
    ),
    "google/mt5-small": (
        *("MT5ForConditionalGeneration", "seq2seq", 300176768),
        _t5("mt5", (512, 1024, 64, 6, 8), 250112),
    ),
    "google/mt5-base": (
        *("MT5ForConditionalGeneration", "seq2seq", 582401280),
        _t5("mt5", (768, 2048, 64, 12, 12), 250112),
    ),
    "google/mt5-large": (
        *("MT5ForConditionalGeneration", "seq2seq", 1229581312),
        _t5("mt5", (1024, 2816, 64, 16, 24), 250112),
    ),
    "google-t5/t5-3b": (
        *("T5ForConditionalGeneration", "seq2seq", 2851598336),
        _t5(
            "t5",
            (1024, 16384, 128, 32, 24),
            32128,
            feed_forward_proj="relu",
            tie_word_embeddings=True,
        ),
    ),
    "google/flan-ul2": (
        *("T5ForConditionalGeneration", "seq2seq", 19591209984),
        _t5("t5", (4096, 16384, 256, 16, 32), 32128, feed_forward_proj="gated-silu"),
    ),
    "google/long-t5-tglobal-base": (
        *("LongT5ForConditionalGeneration", "seq2seq", 247587456),
        _t5("longt5", (768, 2048, 64, 12, 12), 32128, encoder_attention_type="transient-global"),
    ),
    "FacebookAI/xlm-roberta-base": (
        *("XLMRobertaModel", "encoder", 278043648),
        _encoder("xlm-roberta", (768, 12, 12, 3072), 250002, max_position_embeddings=514, **_XLM),
    ),
    "FacebookAI/xlm-roberta-large": (
        *("XLMRobertaModel", "encoder", 559890432),
        _encoder("xlm-roberta", (1024, 24, 16, 4096), 250002, max_position_embeddings=514, **_XLM),
    ),
    "BAAI/bge-m3": (
        *("XLMRobertaModel", "encoder", 567754752),
        _encoder("xlm-roberta", (1024, 24, 16, 4096), 250002, max_position_embeddings=8194, **_XLM),
    ),
    "sentence-transformers/all-MiniLM-L6-v2": (
        *("BertModel", "encoder", 22713216),
        _encoder("bert", (384, 6, 12, 1536), 30522, max_position_embeddings=512),
    ),
    "sentence-transformers/all-MiniLM-L12-v2": (
        *("BertModel", "encoder", 33360000),
        _encoder("bert", (384, 12, 12, 1536), 30522, max_position_embeddings=512),
    ),
    "sentence-transformers/all-mpnet-base-v2": (
        *("MPNetModel", "encoder", 109486464),
        _encoder("mpnet", (768, 12, 12, 3072), 30527, max_position_embeddings=514),
    ),
    "google/electra-base-discriminator": (
        *("ElectraModel", "encoder", 108891648),
        _encoder(
            *("electra", (768, 12, 12, 3072), 30522),
            max_position_embeddings=512,
            embedding_size=768,
        ),
    ),
    "answerdotai/ModernBERT-base": (
        *("ModernBertModel", "encoder", 149014272),
        _encoder("modernbert", (768, 22, 12, 1152), 50368, max_position_embeddings=8192),
    ),
    "answerdotai/ModernBERT-large": (
        *("ModernBertModel", "encoder", 394781696),
        _encoder("modernbert", (1024, 28, 16, 2624), 50368, max_position_embeddings=8192),
    ),
    "microsoft/deberta-v3-small": (
        *("DebertaV2Model", "encoder", 141304320),
        _encoder("deberta-v2", (768, 6, 12, 3072), 128100, **_DEBERTA),
    ),
    "microsoft/deberta-v3-xsmall": (
        *("DebertaV2Model", "encoder", 70682112),
        _encoder("deberta-v2", (384, 12, 6, 1536), 128100, **_DEBERTA),
    ),
    "facebook/dinov2-base": (
        *("Dinov2Model", "vision", 86580480),
        {
            "model_type": "dinov2",
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "image_size": 518,
            "patch_size": 14,
        },
    ),
    "facebook/dinov2-large": (
        *("Dinov2Model", "vision", 304368640),
        {
            "model_type": "dinov2",
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "image_size": 518,
            "patch_size": 14,
        },
    ),
    "microsoft/swin-tiny-patch4-window7-224": (
        *("SwinForImageClassification", "vision", 28288354),
        {
            "model_type": "swin",
            "embed_dim": 96,
            "depths": [2, 2, 6, 2],
            "num_heads": [3, 6, 12, 24],
            "window_size": 7,
            "image_size": 224,
            "patch_size": 4,
            "num_labels": 1000,
        },
    ),
    "facebook/convnext-tiny-224": (
        *("ConvNextForImageClassification", "vision", 28589128),
        {
            "model_type": "convnext",
            "hidden_sizes": [96, 192, 384, 768],
            "depths": [3, 3, 9, 3],
            "image_size": 224,
            "num_labels": 1000,
        },
    ),
    "microsoft/beit-base-patch16-224": (
        *("BeitForImageClassification", "vision", 86530984),
        {
            "model_type": "beit",
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "use_relative_position_bias": True,
            "layer_scale_init_value": 0.1,
            "num_labels": 1000,
            **_PICTURE,
        },
    ),
    "google/siglip-base-patch16-224": (
        *("SiglipModel", "vision", 203155970),
        {
            "model_type": "siglip",
            "text_config": {"hidden_size": 768, "vocab_size": 32000, "max_position_embeddings": 64},
            "vision_config": {"hidden_size": 768, **_PICTURE},
        },
    ),
}
