"""Numbers that no job has: of a model's config.json, and of what a person states.

{"hidden_size": -64}  ->  the model's hidden_size, -64: it is a whole number from 1 to 10,000,000

Left alone they would be passed over for a default, or counted for minutes, and the answer be that
of another job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.model.core import Fact

MOST = 10**9
_DEEPEST = 10_000
_WIDEST = 10**7
_SHOWN = 40
_NETWORK: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("num_hidden_layers", "n_layer", "num_layers", "n_layers"), (1, _DEEPEST)),
    **dict.fromkeys(("hidden_size", "n_embd", "d_model"), (1, _WIDEST)),
    **dict.fromkeys(("num_attention_heads", "n_head"), (1, _WIDEST)),
    "num_key_value_heads": (1, _WIDEST),
    "head_dim": (0, _WIDEST),
    **dict.fromkeys(("intermediate_size", "n_inner", "d_ff"), (0, MOST)),
    "vocab_size": (1, MOST),
}
_SINGLE = ("num_hidden_layers", "n_layer", "hidden_size", "n_embd", "d_model", "vocab_size")
_PARTS = ("text_config", "vision_config", "encoder", "decoder")
_STATED: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("train.micro_batch", "train.global_batch", "train.grad_accum"), (1, MOST)),
    **dict.fromkeys(("train.seq_len", "train.target_len", "serve.max_len"), (1, MOST)),
    **dict.fromkeys(("eval.batch", "gen.batch", "gen.prompt", "gen.max_new_tokens"), (1, MOST)),
    **dict.fromkeys(("model.hidden", "model.heads", "model.kv_heads"), (1, _WIDEST)),
    **dict.fromkeys(("model.vocab", "model.labels", "model.head_dim"), (1, MOST)),
    "model.intermediate": (0, MOST),
    "model.layers": (1, _DEEPEST),
    "lora.rank": (1, _WIDEST),
    "dist.world_size": (1, _WIDEST),
}


def faults_of_network(config: Mapping[str, object]) -> Iterator[str]:
    """Yield what a config.json says of its model that no model has."""
    yield from _faults("", config)
    for part in _PARTS:
        inner = config.get(part)
        if isinstance(inner, dict):
            yield from _faults(f"{part}.", inner)


def fault_of_stated(fact: Fact) -> str | None:
    """Return why no job has what a person states, None where it may."""
    bounds = _STATED.get(fact.key)
    if bounds is None or _is_within(fact.value, bounds):
        return None
    return f"{fact.key} = {fact.value} ({fact.source}): {_expected(bounds)}"


def _faults(prefix: str, config: Mapping[str, object]) -> Iterator[str]:
    for key, bounds in _NETWORK.items():
        value = config.get(key)
        if isinstance(value, dict):
            continue  # counted apart for each part of the network
        several = isinstance(value, list) and key not in _SINGLE
        for one in value if isinstance(value, list) and several else [value]:
            if one is not None and not _is_within(one, bounds):
                shown = repr(one)
                short = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
                yield f"the model's {prefix}{key}, {short}: {_expected(bounds)}"
                break


def _is_within(value: object, bounds: tuple[int, int]) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    whole = isinstance(value, int) or value.is_integer()
    return whole and bounds[0] <= value <= bounds[1]


def _expected(bounds: tuple[int, int]) -> str:
    return f"it is a whole number from {bounds[0]} to {bounds[1]:,}"
