"""The same job with fewer layers: what is learnt of one layer holds for those like it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.job import Job

LAYERS = (
    *("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"),
    *("encoder_layers", "decoder_layers"),
)
NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
# models whose layers are not all alike say so by one of these
MIXED = (
    *("layer_types", "sliding_window_pattern", "attn_layer_period", "full_attention_interval"),
    *("first_k_dense_replace", "decoder_sparse_step", "interleave_moe_layer_step"),
    *("moe_layer_freq", "mlp_layer_types", "hybrid_override_pattern", "no_rope_layers"),
    *("attention_types", "layers_block_type", "cross_attention_layers", "kv_shared_layer_index"),
)
FEW, FEW_MIXED = 2, 8


def layers_of(job: Job) -> int | None:
    """Return how many layers a model has, None where its config has no such number."""
    found = [
        value
        for held in _held(job.model.config)
        for key in LAYERS
        if isinstance(value := held.get(key), int) and not isinstance(value, bool)
    ]
    return max(found) if found else None


def with_few_layers(job: Job, least: int = 0) -> Job | None:
    """Return the job with a few layers of each kind; None where it cannot be made smaller.

    It keeps `least` layers or more.
    """
    count = layers_of(job)
    mixed = any(key in held for held in _held(job.model.config) for key in MIXED)
    few = max(least, FEW_MIXED if mixed else FEW)
    if count is None or count <= few or (job.lora is not None and job.lora.layers):
        return None
    return replace(job, model=replace(job.model, config=_cut(job.model.config, few), params=None))


def _held(config: Mapping[str, object]) -> list[Mapping[str, object]]:
    inner = [value for name in NESTED if isinstance(value := config.get(name), dict)]
    return [config, *inner]


def _cut(config: Mapping[str, object], few: int) -> dict[str, object]:
    """Return a config of `few` layers; lists with a value for each layer become shorter."""
    counts = {value for key in LAYERS if isinstance(value := config.get(key), int)}
    made: dict[str, object] = {}
    for key, value in config.items():
        if key in LAYERS and isinstance(value, int):
            made[key] = min(value, few)
        elif key in NESTED and isinstance(value, dict):
            made[key] = _cut(value, few)
        elif isinstance(value, (list, tuple)) and len(value) in counts:
            made[key] = list(value[:few])
        else:
            made[key] = value
    return made
