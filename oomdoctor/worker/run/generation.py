"""Generation with a key/value cache, by the model's own `generate`.

A dynamic cache is joined anew for every token and layer. Of a long answer the first and the last
tokens run through the model; those between only make the cache grow, which is all that they leave.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.run.training import host_batch
from oomdoctor.worker.twins.adapter import base_of, unwrapped
from oomdoctor.worker.twins.beams import to_the_end
from oomdoctor.worker.twins.vision_language import EXTRAS

if TYPE_CHECKING:
    from oomdoctor.model.job import GenerationSpec
    from oomdoctor.worker.run.bench import Bench

_TRACED_TOKENS = 3
"""Tokens at each end of an answer that run through the model."""
_MOST_UPDATES = 40_000
"""Updates of one layer's cache between the ends; beyond, it grows by several tokens at once."""


def generate(bench: Bench) -> None:
    """Generate as the job says."""
    spec = bench.job.generation
    if spec is None:
        return
    bench.phase("generation")
    bench.model.eval()
    prompt = host_batch(bench, spec.batch, spec.prompt)
    tokens = prompt["input_ids"].to(bench.device)
    mask = torch.ones_like(tokens)
    extras = {name: prompt[name].to(bench.device) for name in EXTRAS if name in prompt}
    bench.observer.tag([tokens, mask, *extras.values()], "input")
    paired = getattr(base_of(bench.model).config, "is_encoder_decoder", False)
    whole = spec.new_tokens <= 2 * _TRACED_TOKENS or spec.cache != "dynamic" or spec.beams > 1
    if whole or paired:
        _run(bench, spec, tokens, mask, new=_shown(bench, spec), cache=None, extras=extras)
    else:
        _run_ends(bench, spec, tokens, mask, extras)
    bench.model.train(bench.job.trains)


def _shown(bench: Bench, spec: GenerationSpec) -> int:
    """Return how many tokens run where the cache cannot be made to grow between the ends."""
    most = 4 * _TRACED_TOKENS
    if spec.new_tokens > most and spec.cache == "dynamic":
        bench.observer.assume(
            f"an answer of {spec.new_tokens} tokens is traced for {most}; its cache grows on"
        )
        return most
    return min(spec.new_tokens, most)


def _run(
    bench: Bench,
    spec: GenerationSpec,
    tokens: torch.Tensor,
    mask: torch.Tensor,
    *,
    new: int,
    cache: Any,
    extras: dict[str, torch.Tensor] | None = None,
) -> torch.Tensor:
    model = unwrapped(bench.model)
    settings: dict[str, Any] = {
        "max_new_tokens": new,
        "min_new_tokens": new,
        "do_sample": spec.beams == 1 and (spec.returns > 1 or bench.job.task == "grpo"),
        "num_beams": spec.beams,
        "use_cache": spec.cache != "none",
    }
    if cache is None:
        settings["num_return_sequences"] = spec.returns
        if spec.cache == "static":
            cache = _static_cache(bench, spec)
            bench.observer.assume("decoding with a static cache is traced as it runs uncompiled")
            settings["disable_compile"] = True
    if cache is not None:
        settings[_cache_name(model)] = cache
    with torch.no_grad(), to_the_end(base_of(model), new):
        answer: torch.Tensor = model.generate(
            input_ids=tokens,
            attention_mask=mask,
            pad_token_id=0,
            eos_token_id=None,
            **settings,
            **(extras or {}),
        )
    return answer


def _run_ends(
    bench: Bench,
    spec: GenerationSpec,
    tokens: torch.Tensor,
    mask: torch.Tensor,
    extras: dict[str, torch.Tensor],
) -> None:
    """Run the first tokens, let the cache grow, and run the last ones."""
    from transformers.cache_utils import DynamicCache

    config = base_of(bench.model).config
    try:
        cache = DynamicCache(config=config)
    except TypeError:  # transformers before 4.54
        cache = DynamicCache()
    if spec.returns > 1:
        tokens = tokens.repeat_interleave(spec.returns, dim=0)
        mask = mask.repeat_interleave(spec.returns, dim=0)
    if spec.returns > 1 and extras:
        raise UnsupportedError("several answers to a picture are not traced")
    answer = _run(bench, spec, tokens, mask, new=_TRACED_TOKENS, cache=cache, extras=extras)
    wanted = spec.prompt + spec.new_tokens - _TRACED_TOKENS
    _grow(bench, cache, wanted - 1)
    missing = wanted - answer.shape[1]
    answer = torch.cat((answer, answer[:, :1].expand(-1, missing)), dim=1)
    _run(bench, spec, answer, torch.ones_like(answer), new=_TRACED_TOKENS, cache=cache)


def _grow(bench: Bench, cache: Any, length: int) -> None:
    """Make every layer's cache as long as if the tokens between had run."""
    layers = getattr(cache, "layers", None)
    if not layers or not hasattr(layers[0], "update"):
        raise UnsupportedError("the cache of this transformers cannot be grown")
    steps = length - cache.get_seq_length()
    stride = max(1, -(-steps * len(layers) // _MOST_UPDATES))
    if stride > 1:
        bench.observer.assume(f"the cache is traced as if it grew by {stride} tokens at once")
    for first in range(0, steps, stride):
        count = min(stride, steps - first)
        for layer in layers:
            keys = layer.keys[..., :1, :].expand(*layer.keys.shape[:-2], count, -1)
            values = layer.values[..., :1, :].expand(*layer.values.shape[:-2], count, -1)
            bench.observer.tag(layer.update(keys, values), "kv cache")


def _static_cache(bench: Bench, spec: GenerationSpec) -> Any:
    from transformers.cache_utils import StaticCache

    config = base_of(bench.model).config
    length = spec.prompt + spec.new_tokens
    try:
        return StaticCache(config=config, max_cache_len=length)
    except TypeError as error:
        raise UnsupportedError(f"a static cache cannot be made: {error}") from error


def _cache_name(model: Any) -> str:
    """Return what this version of transformers calls the cache: `cache`, or `past_key_values`."""
    parameters = inspect.signature(type(base_of(model)).forward).parameters
    return "cache" if "cache" in parameters else "past_key_values"
