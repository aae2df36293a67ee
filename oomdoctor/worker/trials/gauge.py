"""Reads memory while a job runs: of the caching allocator, or of what is counted on the host."""

from __future__ import annotations

import gc
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from oomdoctor.inject.counted import CountedMemory
from oomdoctor.worker.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PEAK_OF_HOST = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")
_RESETS_PEAK = "5"  # Linux: VmHWM becomes VmRSS


class CardGauge:
    """A CUDA device, real or virtual."""

    def __init__(self, device: torch.device, cap_bytes: int | None) -> None:
        """Set the cap before anything is allocated."""
        self._device = device
        total = torch.cuda.get_device_properties(device).total_memory
        if cap_bytes is not None:
            torch.cuda.set_per_process_memory_fraction(min(1.0, cap_bytes / total), device)
        self.reset()

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count nothing: the allocator does."""
        yield

    def peaks(self) -> tuple[int, int | None, int | None]:
        """Return what the allocator counted, and what the whole card uses now."""
        free, total = torch.cuda.mem_get_info(self._device)
        cuda = torch.cuda
        return (
            cuda.max_memory_allocated(self._device),
            cuda.max_memory_reserved(self._device),
            total - free,
        )

    def reset(self) -> None:
        """Reset the allocator's peaks."""
        torch.cuda.reset_peak_memory_stats(self._device)

    def wait(self) -> None:
        """Wait for the device."""
        torch.cuda.synchronize(self._device)


class HostGauge:
    """Tensors of the host, counted under a cap.

    Objects in cycles are collected when Python likes; here they are at every reset, so that a
    figure does not depend on the moment.
    """

    def __init__(self, cap_bytes: int | None) -> None:
        """Count nothing yet."""
        self._memory = CountedMemory(torch, cap_bytes)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what operators make."""
        self._memory.enter()
        try:
            yield
        finally:
            self._memory.leave()

    def peaks(self) -> tuple[int, int | None, int | None]:
        """Return what was counted; there is no cache and no card."""
        return self._memory.peak_bytes, None, None

    def reset(self) -> None:
        """Forget the peak."""
        gc.collect()
        self._memory.reset_peak()

    def wait(self) -> None:
        """Wait for nothing."""


def device_of(kind: str) -> torch.device:
    """Return a device of a kind, cuda or cpu; UnsupportedError where there is none."""
    if kind == "cpu":
        return torch.device(kind)
    if not torch.cuda.is_available():
        raise UnsupportedError("torch finds no CUDA device here")
    return torch.device(kind, torch.cuda.current_device())


def gauge_of(device: torch.device, cap_bytes: int | None) -> CardGauge | HostGauge:
    """Return what reads the memory of a device."""
    if device.type == "cpu":
        return HostGauge(cap_bytes)
    return CardGauge(device, cap_bytes)


def host_peak_bytes() -> int | None:
    """Return the largest resident size of this process since the last call, where Linux tells."""
    try:
        lines = _STATUS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    with suppress(OSError):
        _PEAK_OF_HOST.write_text(_RESETS_PEAK, encoding="utf-8")
    return int(found[0]) * 1024 if found else None
