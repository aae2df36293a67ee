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
