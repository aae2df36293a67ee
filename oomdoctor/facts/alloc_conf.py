"""PyTorch's allocator setting: one text such as `expandable_segments:True,max_split_size_mb:128`.

It stands in PYTORCH_CUDA_ALLOC_CONF (PYTORCH_ALLOC_CONF in newer versions, PYTORCH_HIP_ALLOC_CONF
on ROCm) or in a call of `_set_allocator_settings`. The value replaces the defaults as a whole, so
an option that it does not name has its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from oomdoctor.model.core import Quote, Value

NAMES = (
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NPU_ALLOC_CONF",
    "PYTORCH_XPU_ALLOC_CONF",
)
TRUE_WORDS = ("true", "1")
FALSE_WORDS = ("false", "0")
BACKENDS = {"native": "native", "cudamallocasync": "cudaMallocAsync"}
KEYS = {
    "expandable_segments": "alloc.expandable_segments",
    "max_split_size_mb": "alloc.max_split_size",
    "garbage_collection_threshold": "alloc.gc_threshold",
    "per_process_memory_fraction": "alloc.fraction",
    "roundup_power2_divisions": "alloc.roundup",
    "backend": "alloc.backend",
}
OPTIONS = (
    "expandable_segments",
    "max_split_size_mb",
    "garbage_collection_threshold",
    "roundup_power2_divisions",
    "roundup_bypass_threshold_mb",
    "backend",
    "pinned_",
    "release_lock_on_cudamalloc",
    "max_non_split_rounding_mb",
    "graph_capture_record_stream_reuse",
    "use_cuda_host_register",
    "throw_on_cudamalloc_oom",
    "per_process_memory_fraction",
)


def is_setting(value: str) -> bool:
    """Say whether `value` names at least one known option."""
    return any(name.startswith(OPTIONS) for name, _ in options(value))


def options(value: str) -> tuple[tuple[str, str], ...]:
    """Return the options of a setting as (name, value); commas inside brackets do not part them."""
    parts: list[str] = []
    depth, begin = 0, 0
    for at, character in enumerate(value):
        if character == "[":
            depth += 1
        elif character == "]":
            depth = max(0, depth - 1)
        elif character == "," and depth == 0:
            parts.append(value[begin:at])
            begin = at + 1
    parts.append(value[begin:])
    pairs = (part.strip().partition(":") for part in parts)
    return tuple((name.strip(), rest.strip()) for name, colon, rest in pairs if colon)


def values(setting: str) -> dict[str, Value]:
    """Return the facts' values by key; options of a wrong form are left out."""
    said: dict[str, Value] = {"alloc.conf": setting.strip()}
    for name, value in options(setting):
        pair = _value(name, value)
        if pair is not None:
            said[pair[0]] = pair[1]
    return said


def facts(setting: str, *, quotes: tuple[Quote, ...] = (), source: str | None = None) -> list[Fact]:
    """Return the facts of a setting; expandable segments are off where it does not name them."""
    stated = values(setting)
    said = [
        Fact(key=key, value=value, quotes=quotes, source=source) for key, value in stated.items()
    ]
    if "alloc.expandable_segments" not in stated:
        said.append(
            Fact(
                key="alloc.expandable_segments",
                value=False,
                origin=Origin.DERIVED,
                quotes=quotes,
                source="the allocator setting does not name expandable_segments",
            )
        )
    return said


def _value(name: str, value: str) -> tuple[str, Value] | None:
    key = KEYS.get(name)
    read: Value | None
    match name:
        case "expandable_segments":
            read = _truth(value)
        case "max_split_size_mb":
            read = int(value) << 20 if value.isdecimal() else None
        case "garbage_collection_threshold" | "per_process_memory_fraction":
            read = _ratio(value)
        case "backend":
            read = BACKENDS.get(value.lower())
        case _:
            read = value
    return None if key is None or read is None else (key, read)


def _truth(value: str) -> bool | None:
    lower = value.lower()
    if lower in TRUE_WORDS:
        return True
    return False if lower in FALSE_WORDS else None


def _ratio(value: str) -> float | None:
    try:
        ratio = float(value)
    except ValueError:
        return None
    return ratio if 0 <= ratio <= 1 else None
