"""The budget of a server on a card, whichever engine it is, and what would make it fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.formula_engine import (
    engine_budget,
    largest_pass,
    largest_share,
    share_of,
)
from oomdoctor.memory.formula_host import PROCESS
from oomdoctor.memory.formula_local import host_weights, local_budget
from oomdoctor.memory.formula_pipeline import pipeline_budget, weights_bytes
from oomdoctor.memory.formula_serving import weight_bytes
from oomdoctor.memory.formula_shape import shape_of
from oomdoctor.model.estimate import FITS
from oomdoctor.model.job import QuantSpec
from oomdoctor.model.serving import DIFFUSERS, LOCAL, OLLAMA, SGLANG, TGI, VLLM, CardBudget
from oomdoctor.record import NamedTuple, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.model.job import CardSpec
    from oomdoctor.model.serving import ServingSpec

STEP = 256
SHARD = 5_000_000_000  # bytes of one file of a checkpoint (huggingface_hub splits there)
LOCAL_PROCESS = 1 << 29


class Flags(NamedTuple):
    """What an engine calls the settings that a change names."""

    share: str
    longest: str
    cache: str
    ranks: str
    sequences: str


FLAGS: Mapping[str, Flags] = {
    VLLM: Flags(
        "--gpu-memory-utilization",
        "--max-model-len",
        "--kv-cache-dtype fp8",
        "--tensor-parallel-size",
        "--max-num-seqs",
    ),
    SGLANG: Flags(
        "--mem-fraction-static",
        "--context-length",
        "--kv-cache-dtype fp8_e5m2",
        "--tp",
        "--max-running-requests",
    ),
    TGI: Flags(
        "--cuda-memory-fraction",
        "--max-total-tokens",
        "--kv-cache-dtype fp8_e5m2",
        "--num-shard",
        "--max-concurrent-requests",
    ),
}


def budget_of(spec: ServingSpec, card: CardSpec) -> CardBudget:
    """Return the budget of one card; ValueError for what no formula covers."""
    if spec.engine == DIFFUSERS:
        return pipeline_budget(spec, card)
    return local_budget(spec, card) if spec.engine in LOCAL else engine_budget(spec, card)


def budget_with_changes(spec: ServingSpec, card: CardSpec) -> CardBudget:
    """Return the budget of one card, with the single changes that fit where it does not."""
    made = budget_of(spec, card)
    if made.verdict == FITS:
        return made
    found = [text for text, other in _changes(spec, card, made) if _fits(other, card)]
    return replace(made, changes=tuple(found))


def _fits(spec: ServingSpec, card: CardSpec) -> bool:
    return budget_of(spec, card).verdict == FITS


def _changes(
    spec: ServingSpec, card: CardSpec, made: CardBudget
) -> Iterator[tuple[str, ServingSpec]]:
    if spec.engine == DIFFUSERS:
        yield from _of_pipelines(spec)
    elif spec.engine in LOCAL:
        yield from _of_local(spec, card)
    else:
        yield from _of_engines(spec, card, made)


def _of_engines(
    spec: ServingSpec, card: CardSpec, made: CardBudget
) -> Iterator[tuple[str, ServingSpec]]:
    flags = FLAGS[spec.engine]
    least, most = made.least_utilization, largest_share(spec, card)
    if least is not None:
        share = least if least > share_of(spec, card) else most
        yield f"{flags.share} {share:.2f}", replace(spec, utilization=share)
    longest = _largest(spec, card, min(made.longest, spec.longest - 1) // STEP)
    if longest:
        yield f"{flags.longest} {longest}", replace(spec, longest=longest)
    if spec.cache in ("auto", "bf16", "f16", "fp16"):
        yield flags.cache, replace(spec, cache="fp8")
    if spec.engine == VLLM and largest_pass(spec, card).sequences > 64:
        yield f"{flags.sequences} 64", replace(spec, sequences=64)
    yield from _packed(spec)
    heads = shape_of(spec.job.model.config).heads
    for ranks in (2, 4, 8):
        if ranks > spec.job.sharding.tensor and heads % ranks == 0:
            wider = replace(spec.job, sharding=replace(spec.job.sharding, tensor=ranks))
            changed = replace(spec, job=wider)
            yield f"{flags.ranks} {ranks}", changed
            if _fits(changed, card):
                return


def _packed(spec: ServingSpec) -> Iterator[tuple[str, ServingSpec]]:
    if spec.job.quant is None:
        for kind, words in (("fp8", "weights in fp8"), ("awq", "weights in 4 bits (AWQ, GPTQ)")):
            yield words, replace(spec, job=replace(spec.job, quant=QuantSpec(kind=kind)))


def _largest(spec: ServingSpec, card: CardSpec, most: int) -> int:
    """Return the longest length, in steps of 256, with which the engine surely starts."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(replace(spec, longest=middle * STEP), card):
            low = middle
        else:
            high = middle
    return low * STEP


def _of_local(spec: ServingSpec, card: CardSpec) -> Iterator[tuple[str, ServingSpec]]:
    name, context = ("num_gpu", "num_ctx") if spec.engine == OLLAMA else ("-ngl", "-c")
    layers = shape_of(spec.job.model.config).layers
    most = layers if spec.layers_on_card is None else min(layers, spec.layers_on_card - 1)
    for count in range(most, -1, -1):
        changed = replace(spec, layers_on_card=count)
        if _fits(changed, card):
            yield f"{name} {count}", changed
            break
    longest = _largest(spec, card, (spec.longest - 1) // STEP)
    if longest:
        yield f"{context} {longest}", replace(spec, longest=longest)
    if spec.cache in ("auto", "f16", "bf16"):
        words = "OLLAMA_KV_CACHE_TYPE=q8_0" if spec.engine == OLLAMA else "-ctk q8_0 -ctv q8_0"
        yield words, replace(spec, cache="q8_0", cache_values=None, flash=True)
    if not spec.flash:
        words = "OLLAMA_FLASH_ATTENTION=1" if spec.engine == OLLAMA else "-fa on"
        yield words, replace(spec, flash=True)


def _of_pipelines(spec: ServingSpec) -> Iterator[tuple[str, ServingSpec]]:
    if spec.offload is None:
        yield "enable_model_cpu_offload()", replace(spec, offload="model")
    if spec.offload != "sequential":
        yield "enable_sequential_cpu_offload()", replace(spec, offload="sequential")
    if not spec.tiled:
        yield "vae.enable_tiling()", replace(spec, tiled=True)
    if spec.job.quant is None:
        packed = replace(spec, job=replace(spec.job, quant=QuantSpec(kind="nf4")))
        yield "networks in nf4 (bitsandbytes)", packed


def host_bytes(spec: ServingSpec) -> int:
    """Return the main memory of loading and of all that is kept there, for all ranks together.

    A rank reads one file of the checkpoint at a time (mapped; its pages count while they are
    read). llama.cpp maps the whole file, but what it copied to a card may leave memory again.
    """
    if spec.engine in LOCAL:
        return LOCAL_PROCESS + host_weights(spec)
    if spec.engine == DIFFUSERS:
        whole = weights_bytes(spec)
        return PROCESS + (whole if spec.offload else min(whole, SHARD))
    ranks = max(1, spec.job.sharding.tensor) * max(1, spec.job.sharding.pipeline)
    file = min(weight_bytes(spec.job, shape_of(spec.job.model.config)), SHARD)
    return ranks * (PROCESS + spec.weights_on_host + spec.swap) + file
