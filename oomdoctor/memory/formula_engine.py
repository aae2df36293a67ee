"""Engines that take a share of the card: vLLM, SGLang and TGI, by formula.

| engine | share of the card | what it holds | beside it |
|---|---|---|---|
| vLLM | utilization x card | weights, adapters, profile run, libraries, graphs, cache | context |
| vLLM before 0.21 | the same | the same without graphs; before 0.2.5 nor libraries | the rest |
| SGLang | static fraction x free at the start | weights, adapters, cache | pass, graphs, context |
| TGI | fraction x 0.93 x free at the start | weights, warm-up, cache | context, graphs |

vLLM 0.11 (arg_utils.py, read as quoted in public): a server's batch is 8,192 tokens and 1,024
sequences on cards of 70 GiB and more that are no A100, else 2,048 and 256; a script's 16,384 or
8,192. SGLang's fraction and TGI's 0.93 are recalled from their sources (server_args.py,
import_utils.py).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.memory import serving_rows as rows
from oomdoctor.memory.formula_serving import SORTED, UNSORTED, profile_bytes, weight_bytes
from oomdoctor.memory.formula_shape import shape_of
from oomdoctor.memory.serving_rows import GIB, exact
from oomdoctor.model.estimate import FITS, OOM, TIGHT
from oomdoctor.model.serving import SGLANG, TGI, VLLM, CardBudget
from oomdoctor.record import NamedTuple, replace
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from oomdoctor.memory.formula_shape import Shape
    from oomdoctor.model.job import CardSpec
    from oomdoctor.model.serving import BudgetRow, ServingSpec

UTILIZATION, NEWER_UTILIZATION = 0.9, 0.92  # vLLM before 0.25.0, and since
LARGE_CARD = 70 * GIB
TGI_ROOM = 0.93
IMAGES = 4 * GIB  # what a profile with images may add; one start of 2024 took 36 GiB
MIB = 1 << 20
# What vLLM's start counts changed: from 0.2.5 to 0.6.5 all that had left the card, then torch's
# bytes and what grew beside them; since 0.21 the graphs too, by its own word in every start.
COUNTS_ALL, GRAPHS_INSIDE, NEWEST = ((0, 2, 5), (0, 6, 6)), (0, 21), (999,)
CAPTURED = ((20, 8), (35, 24), (60, 32), (90, 256))  # GiB of a card, SGLang's largest graph


class Pass(NamedTuple):
    """The largest forward pass: tokens in a batch, and sequences that are sampled."""

    tokens: int
    sequences: int


def largest_pass(spec: ServingSpec, card: CardSpec) -> Pass:
    """Return the pass that an engine is started with on a card."""
    large = card.total_bytes >= LARGE_CARD and "a100" not in card.name.lower()
    if spec.engine == SGLANG:
        tokens = 8192 if card.total_bytes >= 60 * GIB else 4096
        tokens = tokens if card.total_bytes >= 35 * GIB else 2048
        sequences = 64
    elif spec.engine == TGI:
        tokens, sequences = min(4096, spec.longest), 16
    else:
        tokens = (16384 if spec.offline else 8192) if large else (8192 if spec.offline else 2048)
        sequences = 1024 if large else 256
    tokens, sequences = spec.batched_tokens or tokens, spec.sequences or sequences
    return Pass(tokens, min(sequences, tokens))


def share_of(spec: ServingSpec, card: CardSpec) -> float:
    """Return the share of the card that the engine takes: stated, or its default."""
    if spec.utilization is not None:
        return spec.utilization
    if spec.engine == VLLM:
        return UTILIZATION if _version(spec) < (0, 25) else NEWER_UTILIZATION
    if spec.engine == TGI:
        return 1.0
    ranks = max(1, spec.job.sharding.tensor) * max(1, spec.job.sharding.pipeline)
    size = card.total_bytes / GIB
    captured = next((n for top, n in CAPTURED if size < top), 512)
    aside = 512 + 1.5 * largest_pass(spec, card).tokens + 2 * captured + 128 * ranks
    return round(max(0.5, 1 - aside * MIB / card.total_bytes), 3)


def budget_bytes(spec: ServingSpec, card: CardSpec) -> int:
    """Return the bytes that the engine divides."""
    share = share_of(spec, card)
    if spec.engine == VLLM:
        return int(share * card.total_bytes)
    free = card.total_bytes - rows.CONTEXT_BYTES[1]
    return int(share * free * (TGI_ROOM if spec.engine == TGI else 1.0))


def own_weights(spec: ServingSpec, shape: Shape) -> int:
    """Return the weights of one card, without what is kept in main memory."""
    cut = max(1, spec.job.sharding.tensor) * max(1, spec.job.sharding.pipeline)
    whole = weight_bytes(spec.job, shape) // cut
    return max(0, whole - spec.weights_on_host)


def adapter_bytes(spec: ServingSpec, shape: Shape) -> int:
    """Return the slots for adapters: all linear layers at the largest rank, in 16 bits.

    vLLM (lora/layers, recalled): A whole on every card, B split as the layer is.
    """
    if not spec.adapters:
        return 0
    ranks = max(1, spec.job.sharding.tensor)
    width = shape.width * (1 if not shape.experts else 0)
    inputs = 3 * shape.hidden + shape.queries / ranks + 2 * shape.hidden + width / ranks
    outputs = (shape.queries + 2 * shape.keys + 2 * width) / ranks + 2 * shape.hidden
    layers = -(-shape.layers // max(1, spec.job.sharding.pipeline))
    return int(2 * spec.adapters * spec.adapter_rank * (inputs + outputs) * layers)


def rows_of(spec: ServingSpec, card: CardSpec) -> tuple[BudgetRow, ...]:
    """Return all that stands on one card beside the cache."""
    shape = shape_of(spec.job.model.config)
    ranks = max(1, spec.job.sharding.tensor)
    weights = own_weights(spec, shape)
    packed = 0.03 if spec.job.quant is not None else 0.005
    split = f" / {ranks} cards" if ranks > 1 else ""
    one = largest_pass(spec, card)
    said = f"{one.tokens:,} tokens through the widest layer, or {one.sequences:,} x vocabulary"
    found = [
        rows.row(
            rows.WEIGHTS,
            "weights",
            rows.around(weights, packed),
            f"parameters x bytes{split}; a published start of an 8B model agrees to 0.1 %",
        ),
        rows.row(
            rows.PROFILE,
            "temporary",
            _profile(spec, shape, one),
            f"{said} x {UNSORTED} to {SORTED} bytes (measured starts)",
        ),
        rows.row(rows.OUTSIDE, "outside", _libraries(spec), "published starts"),
        rows.row(rows.GRAPHS, "workspace", _graphs(spec, card), "0.1 to 1 GiB in published starts"),
        rows.row(rows.CONTEXT, "outside", rows.CONTEXT_BYTES, "published messages of PyTorch"),
    ]
    slots = adapter_bytes(spec, shape)
    if slots:
        words = f"{spec.adapters} slots of rank {spec.adapter_rank} on all linear layers"
        found.insert(1, rows.row(rows.ADAPTERS, "adapter", rows.around(slots, 0.15), words))
    return tuple(found)


def _profile(spec: ServingSpec, shape: Shape, one: Pass) -> tuple[float, float, float]:
    ranks = max(1, spec.job.sharding.tensor)
    low, high = (
        profile_bytes(shape, tokens=one.tokens, sequences=one.sequences, ranks=ranks, each=each)
        for each in (UNSORTED, SORTED)
    )
    middle = profile_bytes(shape, tokens=one.tokens, sequences=one.sequences, ranks=ranks)
    more = IMAGES if "vision_config" in spec.job.model.config else 0
    return (min(low, 0.8 * middle), middle, max(high, 1.25 * middle) + more)


def _libraries(spec: ServingSpec) -> tuple[float, float, float]:
    """What CUDA libraries and NCCL take after the start: by vLLM's own count (non_torch_memory).

    Published: 0.03, 0.16, 0.20, 0.25, 0.30 GiB since 0.6.6; 1.79 on one card, 3.58 on two before.
    From 0.2.5 on that was all that had left the card (PR 2031), with the context and what the
    allocator kept: 1.0 GiB on one card, 13.4 on four.
    """
    several = spec.job.sharding.tensor > 1 or spec.job.sharding.pipeline > 1
    if COUNTS_ALL[0] <= _version(spec) < COUNTS_ALL[1]:
        low, middle, high = (0.2, 3.0, 13.5) if several else (0.16, 1.5, 1.8)
    else:
        low, middle, high = (0.15, 0.4, 1.2) if several else (0.03, 0.2, 0.6)
    return (low * GIB, middle * GIB, high * GIB)


def _version(spec: ServingSpec) -> tuple[int, ...]:
    """Return the version of vLLM as numbers; one that is not told is the newest."""
    said = spec.job.versions.get("vllm")
    numbers = [int(one) for one in re.findall(r"\d+", said or "")[:3]]
    return tuple(numbers) if spec.engine == VLLM and numbers else NEWEST


def _graphs(spec: ServingSpec, card: CardSpec) -> tuple[float, float, float]:
    if spec.eager:
        return exact(0)
    high = min(1.0 * GIB, 0.03 * card.total_bytes)
    return (0.1 * high, 0.5 * high, high)


INSIDE = {
    VLLM: (rows.WEIGHTS, rows.ADAPTERS, rows.PROFILE, rows.OUTSIDE, rows.GRAPHS),
    SGLANG: (rows.WEIGHTS, rows.ADAPTERS),
    TGI: (rows.WEIGHTS, rows.ADAPTERS, rows.PROFILE),
}
BESIDE = {
    VLLM: (rows.CONTEXT,),
    SGLANG: (rows.PROFILE, rows.GRAPHS, rows.OUTSIDE, rows.CONTEXT),
    TGI: (rows.OUTSIDE, rows.GRAPHS, rows.CONTEXT),
}


def _divided(spec: ServingSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is taken from the engine's share, and what must find room beside it."""
    inside, beside = INSIDE[spec.engine], BESIDE[spec.engine]
    later: tuple[str, ...] = ()
    if spec.engine == VLLM:
        late = {rows.GRAPHS: GRAPHS_INSIDE, rows.OUTSIDE: COUNTS_ALL[0]}
        later = tuple(name for name, since in late.items() if _version(spec) < since)
    return tuple(one for one in inside if one not in later), (*later, *beside)


def engine_budget(spec: ServingSpec, card: CardSpec) -> CardBudget:
    """Divide an engine's share of a card as its start does."""
    budget = budget_bytes(spec, card)
    found = rows_of(spec, card)
    ahead = largest_pass(spec, card).tokens
    inside, beside = (rows.summed(found, names) for names in _divided(spec))
    request = rows.request_bytes(spec, spec.longest, ahead=ahead)
    cache = max(0, budget - inside[1])
    low, middle, high = (size + request for size in inside)
    holds = rows.judged((low, middle, high), budget)
    room = card.total_bytes - budget
    starts = _starts(beside, room)
    requests = cache / request if request else 0.0
    each = rows.layer_bytes(spec) * rows.own_layers(spec).whole
    uniform = not rows.own_layers(spec).windowed
    tokens = int(cache / each) if uniform and each else int(requests * spec.longest)
    made = CardBudget(
        card=card.name,
        capacity_bytes=card.total_bytes,
        budget_bytes=budget,
        taken_bytes=min(card.total_bytes, budget + beside[1]),
        needed_low_bytes=low,
        needed_bytes=middle,
        needed_high_bytes=high,
        rows=found,
        cache_bytes=cache,
        tokens=tokens // rows.BLOCK * rows.BLOCK,
        requests=round(requests, 2),
        longest=rows.longest_in(spec, cache, ahead=ahead, most=_most(spec)),
        missing_bytes=max(0, middle - budget),
        verdict=rows.worse(holds, starts),
        least_utilization=_least(spec, card, (middle, high), beside),
    )
    return replace(made, why=_why(spec, made, request, holds=holds, starts=starts))


def _most(spec: ServingSpec) -> int:
    """Return the longest request that is looked for: what the model was made for, or is asked."""
    return max(spec.trained or 1 << 20, spec.longest)


def _starts(beside: tuple[int, int, int], room: int) -> str:
    """Judge what stands beside the share; its upper end is of few cards, and so is halved."""
    low, middle, high = beside
    if (middle + high) // 2 <= room:
        return FITS
    return OOM if low > room else TIGHT


def _least(
    spec: ServingSpec, card: CardSpec, need: tuple[int, int], beside: tuple[int, int, int]
) -> float | None:
    """Return the smallest share, in hundredths, that holds all and one request; None for none."""
    middle, high = need
    whole = budget_bytes(replace(spec, utilization=1.0), card)
    share = -int(-100 * min(high, middle * (1 + rows.WIDEST)) // whole) / 100
    return share if share * whole + beside[1] <= card.total_bytes else None


def largest_share(spec: ServingSpec, card: CardSpec) -> float:
    """Return the largest share, in hundredths, beside which the rest surely finds room."""
    _, middle, high = rows.summed(rows_of(spec, card), _divided(spec)[1])
    whole = budget_bytes(replace(spec, utilization=1.0), card)
    return max(0, 100 * (card.total_bytes - (middle + high) // 2) // whole) / 100


def _why(spec: ServingSpec, made: CardBudget, request: int, *, holds: str, starts: str) -> str:
    if made.verdict == FITS:
        return ""
    share = f"{format_size(made.budget_bytes)} of {format_size(made.capacity_bytes)}"
    if starts != FITS and rows.worse(holds, starts) == starts:
        return f"the engine's share is {share}: what it needs beside that may find no room"
    if not made.cache_bytes:
        return f"the engine's share is {share}: the weights and the profile run leave no cache"
    return (
        f"the engine's share is {share}: {format_size(made.cache_bytes)} stay for the cache, and"
        f" one request of {spec.longest:,} tokens needs {format_size(request)}"
    )
