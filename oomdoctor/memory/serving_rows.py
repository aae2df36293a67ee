"""What all engines share: rows of a budget, what a request keeps in the cache, the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.formula_serving import CACHE_BYTES
from oomdoctor.memory.formula_shape import shape_of
from oomdoctor.memory.window_layers import Layers, layers_of
from oomdoctor.model.estimate import FITS, OOM, TIGHT
from oomdoctor.model.serving import LOCAL, BudgetRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from oomdoctor.model.serving import ServingSpec

GIB = 1 << 30
WEIGHTS = "weights"
ADAPTERS = "LoRA adapters"
PROFILE = "profile run"
OUTSIDE = "libraries"
GRAPHS = "captured graphs"
CONTEXT = "CUDA context"
REQUEST = "cache of one request"
BLOCK = 16
WIDEST = 0.08
# The context of a process that loads its kernels: public messages of PyTorch leave 0.30 to 0.86 GiB
# for it with all libraries; as an engine starts, before those are loaded, it is at the lower end.
CONTEXT_BYTES = (int(0.25 * GIB), int(0.4 * GIB), int(0.6 * GIB))


def row(name: str, category: str, band: tuple[float, float, float], formula: str) -> BudgetRow:
    """Return a row; the band is low, expected, high."""
    low, middle, high = (int(one) for one in band)
    return BudgetRow(
        name=name,
        category=category,
        bytes=middle,
        low_bytes=low,
        high_bytes=high,
        formula=formula,
    )


def exact(size: float) -> tuple[float, float, float]:
    """Return a band without width."""
    return (size, size, size)


def around(size: float, share: float) -> tuple[float, float, float]:
    """Return a band of a share to both sides."""
    return (size * (1 - share), size, size * (1 + share))


def summed(rows: Iterable[BudgetRow], names: Iterable[str]) -> tuple[int, int, int]:
    """Return the band of the rows of these names together."""
    wanted = set(names)
    found = [one for one in rows if one.name in wanted]
    return (
        sum(one.low_bytes for one in found),
        sum(one.bytes for one in found),
        sum(one.high_bytes for one in found),
    )


def judged(need: tuple[float, float, float], room: float) -> str:
    """Return fits, tight or oom; tight is at most 8 % to either side of what is expected."""
    low, middle, high = need
    if min(high, middle * (1 + WIDEST)) <= room:
        return FITS
    return OOM if max(low, middle * (1 - WIDEST)) > room else TIGHT


def worse(first: str, second: str) -> str:
    """Return the worse of two verdicts."""
    order = (FITS, TIGHT, OOM)
    return max(first, second, key=order.index)


def value_bytes(spec: ServingSpec) -> float:
    """Return the bytes of one key or value in the cache, the mean where they differ."""
    plain = 4.0 if spec.job.dtype == "fp32" else 2.0
    keys = _width(spec.cache, plain)
    return keys if spec.cache_values is None else (keys + _width(spec.cache_values, plain)) / 2


def _width(name: str, plain: float) -> float:
    low = name.lower()
    if low.startswith(("fp8", "e4m3", "e5m2", "int8")):
        return 1.0
    return plain if low in ("auto", "") else CACHE_BYTES.get(low, plain)


def layer_bytes(spec: ServingSpec) -> float:
    """Return what one token leaves in the cache of one layer on one card."""
    shape = shape_of(spec.job.model.config)
    width = value_bytes(spec)
    if shape.key_rank:  # a latent for all heads; every card of tensor parallelism has it whole
        return (shape.key_rank + shape.rope_dim) * width
    ranks = 1 if spec.engine in LOCAL else max(1, spec.job.sharding.tensor)  # others deal layers
    heads = max(1, -(-shape.kv_heads // ranks))
    return 2 * heads * shape.head_dim * width


def own_layers(spec: ServingSpec) -> Layers:
    """Return the layers of one card: of a stage, where there are several."""
    stages = max(1, spec.job.sharding.pipeline)
    kinds = layers_of(config_of(spec))
    return Layers(-(-kinds.whole // stages), -(-kinds.windowed // stages), kinds.window)


def config_of(spec: ServingSpec) -> Mapping[str, Any]:
    """Return the model's config."""
    return spec.job.model.config


def request_bytes(spec: ServingSpec, length: int, *, ahead: int = 0) -> int:
    """Return the cache of one request on one card, in blocks of 16 tokens."""
    blocks = -(-length // BLOCK) * BLOCK
    return int(own_layers(spec).tokens(blocks, ahead=ahead) * layer_bytes(spec))


def longest_in(spec: ServingSpec, room: float, *, ahead: int = 0, most: int = 1 << 24) -> int:
    """Return the tokens of the longest request whose cache fits into `room` bytes."""
    low, high = 0, most // BLOCK
    if request_bytes(spec, most, ahead=ahead) <= room:
        return most
    while high - low > 1:
        middle = (low + high) // 2
        if request_bytes(spec, middle * BLOCK, ahead=ahead) <= room:
            low = middle
        else:
            high = middle
    return low * BLOCK
