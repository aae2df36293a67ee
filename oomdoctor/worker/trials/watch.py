"""Takes down the peaks of every phase of a run, as an observer of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from oomdoctor.model.trial import PhasePeak
from oomdoctor.worker.observer import Silent
from oomdoctor.worker.trials.gauge import host_peak_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.worker.trials.gauge import CardGauge, HostGauge


class Watch(Silent):
    """Hears where a run is; `say` is told at once, so that a run that dies has left its place."""

    def __init__(
        self, gauge: CardGauge | HostGauge, say: Callable[[str, tuple[PhasePeak, ...]], None]
    ) -> None:
        """Begin before the first phase."""
        self.phases: list[PhasePeak] = []
        self.assumptions: list[str] = []
        self._gauge = gauge
        self._say = say
        self._name = ""
        self._began = 0.0

    def phase(self, name: str, part: str = "") -> None:
        """Close the phase before, and begin this one."""
        if part:
            self._say(f"{name}, {part}", tuple(self.phases))
            return
        self.close()
        self._name = name
        self._say(name, tuple(self.phases))

    def close(self) -> None:
        """Take down the phase that ends."""
        self._gauge.wait()
        ended = time.monotonic()
        if self._name:
            self.phases.append(self._taken(ended - self._began))
        self._gauge.reset()
        self._name = ""
        self._began = time.monotonic()

    def failed(self) -> None:
        """Take down the phase that failed; a device that is full is not waited for."""
        if self._name:
            self.phases.append(self._taken(time.monotonic() - self._began))
        self._name = ""

    def _taken(self, seconds: float) -> PhasePeak:
        allocated, reserved, device = self._gauge.peaks()
        return PhasePeak(
            name=self._name,
            allocated_bytes=allocated,
            reserved_bytes=reserved,
            device_bytes=device,
            host_bytes=host_peak_bytes(),
            seconds=seconds,
        )

    def assume(self, sentence: str) -> None:
        """Keep an assumption."""
        self.assumptions.append(sentence)

    def empty_cache(self) -> None:
        """Empty the cache, as the loop does here."""
        import torch

        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()
