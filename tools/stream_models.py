"""The models, cards and shapes that recorded jobs have in common (`stream_jobs.py`)."""

from __future__ import annotations

from typing import Any

from oomdoctor.facts.model_configs import lookup
from oomdoctor.model.job import Job, ModelSpec
from oomdoctor.record import dataclass

A100 = "NVIDIA A100-SXM4-80GB"
H100 = "NVIDIA H100 80GB HBM3"
L4 = "NVIDIA L4"
QWEN_HALF = "Qwen/Qwen2.5-0.5B"
QWEN_7B = "Qwen/Qwen2.5-7B"
LLAMA2_7B = "meta-llama/Llama-2-7b-hf"
LLAMA3_8B = "meta-llama/Llama-3.1-8B"
MISTRAL = "mistralai/Mistral-7B-v0.1"
GPT2 = "openai-community/gpt2"
TINY: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 688,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
}
EXPERTS: dict[str, object] = {
    "num_key_value_heads": 4,
    "num_local_experts": 8,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 344,
}
BART: dict[str, object] = {
    "model_type": "bart",
    "d_model": 512,
    "encoder_layers": 3,
    "decoder_layers": 3,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "decoder_ffn_dim": 2048,
    "vocab_size": 8000,
}
QV = ("q_proj", "v_proj")
ALL = ("all-linear",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A job, the card it runs on, and the settings of the allocator.

    `loop` is the worker's own, or transformers, trl-sft or trl-dpo: that library's.
    """

    job: Job
    card: str = A100
    settings: str = ""
    loop: str = "worker"


def model(name: str, layers: int | None = None) -> ModelSpec:
    """Return a model of the table, with fewer layers where a number is given."""
    found = lookup(name)
    if found is None:
        raise LookupError(name)
    config = dict(found.config)
    for key in ("num_hidden_layers", "n_layer"):
        if layers is not None and key in config:
            config[key] = layers
    of_layers = "" if layers is None else f", {layers} layers"
    return ModelSpec(name=f"{found.name}{of_layers}", config=config, source="table of models")


def tiny() -> ModelSpec:
    """Return a model of two small layers."""
    return ModelSpec(name="tiny llama", config=TINY, source="made up")


def half(**changes: Any) -> Job:
    """Return a job on the half-billion model, 4 of its layers, two rows of 512 tokens."""
    return Job(**{"model": model(QWEN_HALF, 4), "batch": 2, "seq_len": 512, **changes})
