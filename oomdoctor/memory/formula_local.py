"""llama.cpp and what is built on it (Ollama): the buffers of one card, by formula.

The whole cache is taken at the start, for all parallel requests together. Layers with a window
keep the window and a micro-batch (llama_kv_cache_iswa, recalled). Over several cards layers are
dealt out, and each has a compute buffer of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory import serving_rows as rows
from oomdoctor.memory.formula_serving import file_parts, local_buffers
from oomdoctor.memory.formula_shape import shape_of
from oomdoctor.memory.serving_rows import GIB
from oomdoctor.memory.window_layers import layers_of
from oomdoctor.model.estimate import FITS
from oomdoctor.model.serving import CardBudget
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from oomdoctor.model.job import CardSpec
    from oomdoctor.model.serving import BudgetRow, ServingSpec

CACHE = "cache of the whole context"
COMPUTE = "compute buffer"
FILE_TYPE = "f16"
# A process of ggml: a context without PyTorch's kernels, and cuBLAS where it is used (0.2 to
# 0.5 GiB; Ollama itself plans for 0.45 GiB).
PROCESS = (int(0.2 * GIB), int(0.35 * GIB), int(0.55 * GIB))
PADDING = 256


def cards_of(spec: ServingSpec) -> int:
    """Return over how many cards the layers are dealt out."""
    return max(1, spec.job.sharding.tensor) * max(1, spec.job.sharding.pipeline)


def layers_there(spec: ServingSpec) -> float:
    """Return the share of the layers that cards hold."""
    layers = shape_of(spec.job.model.config).layers
    asked = layers if spec.layers_on_card is None else spec.layers_on_card
    return min(1.0, asked / layers)


def cache_bytes(spec: ServingSpec, length: int) -> int:
    """Return the cache of a context on one card."""
    kinds = layers_of(spec.job.model.config)
    each = rows.layer_bytes(spec)
    one = -(-length // PADDING) * PADDING
    kept = kinds.whole * one
    if not kinds.whole:  # llama.cpp has windows for families that mix both kinds
        kept = kinds.windowed * one
    elif kinds.windowed:
        window = min(one, kinds.window * spec.parallel + spec.micro_batch)
        kept += kinds.windowed * (-(-window // PADDING) * PADDING)
    return int(kept * each * layers_there(spec) / cards_of(spec))


def _rows(spec: ServingSpec) -> tuple[BudgetRow, ...]:
    kind = spec.file_type or FILE_TYPE
    buffers = local_buffers(
        spec.job.model,
        file_type=kind,
        context=spec.longest,
        layers_on_card=spec.layers_on_card,
        micro_batch=spec.micro_batch,
        flash=spec.flash,
    )
    where = "" if spec.layers_on_card is None else f", {spec.layers_on_card} layers"
    held = cache_bytes(spec, spec.longest)
    return (
        rows.row(
            rows.WEIGHTS,
            "weights",
            rows.around(buffers.weights / cards_of(spec), 0.03),
            f"parameters x bits of {kind}{where}; a published log of an 8B model agrees to 0.1 %",
        ),
        rows.row(
            CACHE,
            "kv cache",
            rows.around(held, 0.005),
            f"{spec.longest:,} tokens x layers x keys and values of {spec.cache}",
        ),
        rows.row(
            COMPUTE,
            "temporary",
            (0.98 * buffers.compute, buffers.compute, 1.25 * buffers.compute + 0.02 * GIB),
            f"{spec.micro_batch} tokens x (vocabulary + hidden) x 4 bytes; published logs agree",
        ),
        rows.row(rows.CONTEXT, "outside", PROCESS, "an estimate; Ollama plans for 0.45 GiB"),
    )


def local_budget(spec: ServingSpec, card: CardSpec) -> CardBudget:
    """Lay llama.cpp's buffers out on a card; ValueError for an unknown file type."""
    found = _rows(spec)
    need = rows.summed(found, [one.name for one in found])
    held = cache_bytes(spec, spec.longest)
    rest = need[1] - held
    room = max(0, card.total_bytes - rest)
    verdict = rows.judged(need, card.total_bytes)
    missing = max(0, need[1] - card.total_bytes)
    why = (
        f"{format_size(missing)} more than the card has"
        if missing
        else "it depends on what is known as a band alone"
    )
    return CardBudget(
        card=card.name,
        capacity_bytes=card.total_bytes,
        budget_bytes=card.total_bytes,
        taken_bytes=min(need[1], card.total_bytes),
        needed_low_bytes=need[0],
        needed_bytes=need[1],
        needed_high_bytes=need[2],
        rows=found,
        cache_bytes=held,
        tokens=spec.longest,
        requests=float(spec.parallel),
        longest=longest_context(spec, room),
        missing_bytes=missing,
        verdict=verdict,
        why="" if verdict == FITS else why,
    )


def longest_context(spec: ServingSpec, room: int) -> int:
    """Return the longest context whose cache fits into `room` bytes, other buffers as they are."""
    most = spec.trained or 1 << 20
    low, high = 0, most // PADDING + 1
    if layers_there(spec) == 0:
        return most
    while high - low > 1:
        middle = (low + high) // 2
        if cache_bytes(spec, middle * PADDING) <= room:
            low = middle
        else:
            high = middle
    return low * PADDING


def host_weights(spec: ServingSpec) -> int:
    """Return what stays in main memory: the table of tokens, and layers that no card holds."""
    parts = file_parts(spec.job.model, spec.file_type or FILE_TYPE)
    there = layers_there(spec)
    cache = cache_bytes(spec, spec.longest) * cards_of(spec) / there * (1 - there) if there else 0
    return int(parts.table + parts.inside * (1 - there) + cache)
