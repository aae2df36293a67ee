"""The model of a job: by its name in the table, by a config.json, or by a stated shape."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oomdoctor.facts import model_configs
from oomdoctor.memory.jobs_check import faults_of_network
from oomdoctor.model.job import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.memory.jobs_book import Said

ASK = "the model: --model NAME, or --model config.json"
_HEAD = "lm_head"


def model_of(said: Said) -> ModelSpec | None:
    """Return the model; without one the reading lacks it."""
    name = said.text("model.name")
    found = _from_config(said, name) or _from_table(said, name) or _from_shape(said, name)
    if found is None and name is None:
        said.lack(ASK)
    elif found is None:
        said.lack(
            f"the shape of {name}, which is not in the table of models: give its config.json"
            " (--model FOLDER/config.json)"
        )
    return found


def _from_config(said: Said, name: str | None) -> ModelSpec | None:
    text = said.text("model.config")
    if text is None:
        return None
    try:
        config = json.loads(text)
    except ValueError:
        return None
    if not isinstance(config, dict) or "model_type" not in config:
        return None
    for fault in faults_of_network(config):
        said.lack(fault)
    named = config.get("architectures")
    first = named[0] if isinstance(named, list) and named else named
    return ModelSpec(
        name=name or str(config["model_type"]),
        config=config,
        source="config.json",
        architecture=first if isinstance(first, str) else None,
    )


def _from_table(said: Said, name: str | None) -> ModelSpec | None:
    known = model_configs.lookup(name) if name else None
    near = known is None and name is not None and said.supposes
    if name is not None and near:
        known = model_configs.nearest(name)
    if name is None or known is None:
        return None
    source = f"table of models: {known.name}"
    if near:
        said.assume(
            f"{name} has the shape of {known.name}, whose name is in its own (it is not in the"
            " table of models; --model config.json tells for certain)"
        )
    elif known.variant:
        said.assume(f"{name} has the shape of {known.name} (table of models)")
    return ModelSpec(
        name=name,
        config=_resized(said, known.config),
        source=source,
        architecture=known.architecture,
        params=known.params,
    )


def _resized(said: Said, config: Mapping[str, object]) -> Mapping[str, object]:
    """Return a config with the dimensions that were stated apart from the model's name."""
    changes = {
        key: said.count(fact)
        for key, fact in (("num_hidden_layers", "model.layers"), ("vocab_size", "model.vocab"))
        if key in config and _stated_apart(said, fact)
    }
    return {**config, **changes} if changes else config


def _stated_apart(said: Said, key: str) -> bool:
    fact = said.book.get(key)
    return fact is not None and said.stated(key) and bool(fact.quotes or not fact.source)


def _from_shape(said: Said, name: str | None) -> ModelSpec | None:
    """Build a config from stated widths: a GPT-2 for nanoGPT, else a gated decoder."""
    layers, hidden = said.count("model.layers"), said.count("model.hidden")
    heads = said.count("model.heads")
    if not (layers and hidden and heads):
        return None
    nano = said.text("job.framework") == "nanogpt"
    vocab = said.count("model.vocab")
    if vocab is None and nano:
        vocab = 50304
        said.assume("vocabulary of 50,304 (default of nanoGPT)")
    if vocab is None:
        return None
    if nano:
        positions = said.count("train.seq_len") or 1024
        config: dict[str, object] = {
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "n_layer": layers,
            "n_embd": hidden,
            "n_head": heads,
            "n_positions": positions,
            "vocab_size": vocab,
        }
        return ModelSpec(name=name or "nanoGPT", config=config, source="stated shape")
    width = said.count("model.intermediate")
    if width is None:
        width = 4 * hidden
        said.assume("feed-forward layers four times as wide as the hidden size")
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": said.count("model.kv_heads") or heads,
        "head_dim": said.count("model.head_dim") or hidden // heads,
        "intermediate_size": width,
        "vocab_size": vocab,
        "tie_word_embeddings": bool(said.flag("model.tied")),
    }
    said.assume("a gated decoder as Llama, of the stated widths")
    return ModelSpec(name=name or "stated shape", config=config, source="stated shape")
