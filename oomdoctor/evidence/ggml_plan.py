"""What a ggml engine puts on which device: free memory, model, cache and compute buffers.

using device CUDA1 (NVIDIA GeForce RTX 3060) - 11228 MiB free
load_tensors:        CUDA1 model buffer size =  7301.44 MiB
|   - CUDA0 (RTX 4060) | 8188 = 7600 + (9216 = 7168 + 1536 + 512) + -8628 |         what is planned
|   - CUDA0 (RTX 4060) | 8188 =  910 + (6812 = 5001 + 1536 + 275) +   466 |         what is held
ggml_backend_cuda_buffer_type_alloc_buffer: allocating 6012.50 MiB on device 1: cudaMalloc
    failed: out of memory
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MIB, Amount, bytes_fact, derived, stated
from oomdoctor.units import size_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine

_DEVICE = r"(?P<device>(?:CUDA|ROCm|HIP|Vulkan|SYCL|CANN|MUSA|Metal|MTL|CPU)\w*?)"
_KEYS = {"": "serve.weights", "kv": "serve.kv_cache", "compute": "serve.compute_buffer"}
_UNSIGNED_MIB = 1 << 43
_OWN_CONTEXT = 1 << 29
_SOURCE = "buffers planned for the device over the bytes that were free on it"


@cache
def _buffer() -> re.Pattern[str]:
    return re.compile(
        rf"{_DEVICE}(?P<host>_Host|_Mapped|_REPACK|_AARCH64)?\s+(?P<kind>model |KV |compute )?"
        r"buffer size\s*=\s*(?P<n>\d+(?:\.\d+)?) MiB"
    )


@cache
def _free() -> re.Pattern[str]:
    return re.compile(
        r"(?:using device )?(?P<device>(?:CUDA|ROCm|Vulkan|SYCL|MTL|Metal)\d*) \(.{0,120}?"
        r"(?:\) - (?P<n>\d+) MiB free|\(?(?P<total>\d+) MiB, (?P<m>\d+) MiB free\))"
    )


@cache
def _breakdown() -> re.Pattern[str]:
    number = r"\s*(\d+)\s*"
    return re.compile(
        rf"- (?P<device>\w+?\d) \(.{{0,80}}\)\s*\|{number}={number}\+ \({number}={number}"
        rf"\+{number}\+{number}\)(?:\s*\+\s*(?P<rest>-?\d+))?"
    )


@cache
def _refused() -> re.Pattern[str]:
    return re.compile(r"allocating (?P<n>\d+(?:\.\d+)?) MiB on device (?P<at>\d+): \w+ failed")


class Plan:
    """Bytes per device, each figure with the line that states it."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.buffers: dict[tuple[str, str], Amount] = {}
        self.free: dict[str, Amount] = {}
        self.total: dict[str, Amount] = {}
        self.planned: set[str] = set()
        self.refused: tuple[str, Amount] | None = None

    def take(self, document: Document, line: LogLine) -> bool:
        """Take a line over; return whether it is one of a device."""
        text = line.text
        if "buffer size" in text:
            return self._buffer(document, line)
        if "MiB free" in text:
            return self._free(document, line)
        if " failed" in text:
            hit = _refused().search(text)
            if hit is not None:
                self.refused = (hit["at"], _amount(document, line, hit, hit["n"]))
            return hit is not None
        return "(" in text and self._breakdown(document, line)

    def _buffer(self, document: Document, line: LogLine) -> bool:
        hit = _buffer().search(line.text)
        if hit is None:
            return False
        kind = (hit["kind"] or "").strip().lower().replace("model", "")
        name = "host" if hit["host"] or hit["device"].startswith("CPU") else hit["device"]
        self.buffers[name, kind] = _amount(document, line, hit, hit["n"])
        return True

    def _free(self, document: Document, line: LogLine) -> bool:
        hit = _free().search(line.text)
        if hit is None:
            return False
        self.free[hit["device"]] = _amount(document, line, hit, hit["n"] or hit["m"])
        if hit["total"]:
            self.total[hit["device"]] = _amount(document, line, hit, hit["total"])
        return True

    def _breakdown(self, document: Document, line: LogLine) -> bool:
        hit = _breakdown().search(line.text)
        if hit is None:
            return False
        total, free, held, model, context, compute = hit.groups()[1:7]
        name = hit["device"]
        self.total[name] = _amount(document, line, hit, total)
        if _is_loaded(hit["rest"]):
            free = str(int(free) + int(held))
        elif hit["rest"] is not None:
            self.planned.add(name)
        self.free.setdefault(name, _amount(document, line, hit, free))
        for kind, digits in (("", model), ("kv", context), ("compute", compute)):
            self.buffers.setdefault((name, kind), _amount(document, line, hit, digits))
        return True

    def buffer_facts(self) -> Iterator[Fact]:
        """Yield the sums over the devices, per kind of buffer."""
        for kind, key in _KEYS.items():
            parts = [
                one for (name, what), one in self.buffers.items() if what == kind and name != "host"
            ]
            if parts:
                yield _summed(key, parts)
        host = [one for (name, _), one in self.buffers.items() if name == "host"]
        if host:
            yield _summed("serve.host_buffers", host)
        names = set(self.free) | {name for name, _ in self.buffers if name != "host"}
        if names:
            quotes = [one.quote for one in (*self.free.values(), *self.buffers.values())]
            yield derived(
                "serve.devices", len(names), *quotes[:4], source="devices that the log names"
            )

    def spread_facts(self) -> Iterator[Fact]:
        """Yield how unevenly the devices are filled, whatever was free on them."""
        names = sorted({name for name, _ in self.buffers if name != "host"})
        loads = [load for name in names if (load := self.load_of(name)) is not None]
        if len(loads) < 2 or min(load.bytes for load in loads) <= 0:
            return
        most = max(loads, key=lambda load: load.bytes)
        least = min(loads, key=lambda load: load.bytes)
        yield derived(
            "serve.load_spread",
            most.bytes / least.bytes,
            most.quote,
            least.quote,
            source="buffers of the fullest device over those of the emptiest",
            slack=0.01,
        )

    def load_of(self, name: str) -> Amount | None:
        """Return what is planned for a device, the request that it refused included."""
        parts = [one for (device, _), one in self.buffers.items() if device == name]
        if self.refused is not None and re.sub(r"\D", "", name) == self.refused[0]:
            size = self.refused[1]
            known = any(abs(one.bytes - size.bytes) <= MIB for one in parts)
            parts = parts if known else [*parts, size]
        if not parts:
            return None
        return Amount(
            bytes=sum(one.bytes for one in parts),
            slack_bytes=sum(one.slack_bytes for one in parts),
            quote=parts[-1].quote,
        )


def balance_facts(plan: Plan) -> Iterator[Fact]:
    """Yield free and total bytes of the failing device, and how unevenly several are filled."""
    at = plan.refused[0] if plan.refused is not None else None
    names = sorted(plan.free)
    failing = next((name for name in names if re.sub(r"\D", "", name) == at), None)
    failing = failing or (names[0] if len(names) == 1 else None)
    if failing is not None:
        yield bytes_fact("gpu.free", plan.free[failing])
        if failing in plan.total:
            yield bytes_fact("gpu.total", plan.total[failing])
        if failing in plan.planned:
            yield _others(plan.total[failing], plan.free[failing])
    if len(names) > 1:
        yield _summed("serve.available", list(plan.free.values()))
    if failing is not None and not any(name == failing for name, _ in plan.buffers):
        one = plan.free[failing]
        source = "nothing was placed on the device before"
        yield derived("oom.free", one.bytes, one.quote, source=source, slack=one.slack_bytes)
    shares = []
    for name in names:
        load = plan.load_of(name)
        if load is not None and plan.free[name].bytes > 0:
            quotes = (plan.free[name].quote, load.quote)
            shares.append((load.bytes / plan.free[name].bytes, quotes))
    if shares:
        share, quotes = max(shares, key=lambda pair: pair[0])
        yield derived("serve.fullest_share", share, *quotes, source=_SOURCE, slack=0.01)
    if len(shares) > 1 and len(shares) == len(names):
        share, quotes = min(shares, key=lambda pair: pair[0])
        yield derived("serve.emptiest_share", share, *quotes, source=_SOURCE, slack=0.01)


def _others(total: Amount, free: Amount) -> Fact:
    """Return what others hold: a process that only plans has taken no more than a context."""
    return derived(
        "gpu.foreign",
        max(0, total.bytes - free.bytes - _OWN_CONTEXT),
        total.quote,
        free.quote,
        source="total - free before anything was loaded - 0.5 GiB for its context",
        slack=total.slack_bytes + free.slack_bytes,
    )


def _is_loaded(rest: str | None) -> bool:
    """Say whether a table is of what the process holds, and not of what it plans to take.

    What nobody accounts for cannot be less than nothing; a plan exceeds what is used by then. Some
    versions print such a difference as an unsigned number.
    """
    return rest is not None and 0 <= int(rest) < _UNSIGNED_MIB


def _amount(document: Document, line: LogLine, hit: re.Match[str], digits: str) -> Amount:
    size = size_of(digits, MIB)
    return Amount(
        bytes=size.bytes, slack_bytes=size.slack_bytes, quote=document.quote(line, *hit.span())
    )


def _summed(key: str, parts: list[Amount]) -> Fact:
    total = sum(one.bytes for one in parts)
    slack = sum(one.slack_bytes for one in parts)
    return stated(key, total, *(one.quote for one in parts[:8]), slack=slack)
