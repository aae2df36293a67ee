"""Records what a job allocates on a card, real or virtual, from torch's own memory history.

Nothing is added to the run but the number of a moment that each entry of the history carries: no
mode, no hook on a module, nothing that holds a tensor. Which module asked is not known therefore.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.lab.protocol import encode
from oomdoctor.memory.stream import Stream
from oomdoctor.worker.history.entries import Entries
from oomdoctor.worker.observer import Silent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.model.job import CardSpec, Job

MOST_EVENTS = 20_000_000
_LIBRARIES = ("transformers", "peft", "bitsandbytes", "trl", "accelerate")


class Recorder(Silent):
    """Hears where a run is, and what torch counted there (an observer of `worker.run`)."""

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        """Count from now on; `say` is told where the run is."""
        self.peaks: dict[str, dict[str, int]] = {}
        self.assumptions: list[str] = []
        self._say = say
        self._heard: list[tuple[str, str]] = []
        self._now = ""
        torch.cuda.init()
        torch.cuda.memory._record_memory_history("all", context=None, max_entries=MOST_EVENTS)
        self._hear("", "")

    def _hear(self, kind: str, text: str) -> None:
        """Give what is allocated from here on the number of this moment."""
        torch.cuda.memory._set_memory_metadata(str(len(self._heard)))
        self._heard.append((kind, text))

    def phase(self, name: str, part: str = "") -> None:
        """Note a phase or a part of one."""
        if name != self._now or not part:
            self.end_phase()
            self._now = name
            self._hear("phase", name)
        if part:
            self._hear("part", part)
        self._say(f"{name}, {part}" if part else name)

    def end_phase(self) -> None:
        """Take down the peaks of the phase that ends."""
        if self._now:
            self.peaks[self._now] = {
                "allocated_bytes": torch.cuda.max_memory_allocated(),
                "reserved_bytes": torch.cuda.max_memory_reserved(),
            }
        torch.cuda.reset_peak_memory_stats()

    def assume(self, sentence: str) -> None:
        """Keep an assumption."""
        self.assumptions.append(sentence)

    def empty_cache(self) -> None:
        """Empty the cache here."""
        self._hear("empty-cache", "")
        torch.cuda.empty_cache()

    def stream(self, facts: dict[str, object], origin: str) -> Stream:
        """Return all that was allocated and freed."""
        entries = Entries(self._heard)
        for one in torch.cuda.memory._snapshot()["device_traces"][0]:
            entries.take(one)
        return Stream(
            allocations=tuple(entries.allocations),
            events=tuple(entries.events),
            marks=tuple(entries.marks),
            origin=origin,
            assumptions=tuple(dict.fromkeys(self.assumptions)),
            facts={**facts, "peaks": self.peaks, "segments": entries.segments},
        )


def record(
    job: Job,
    card: CardSpec,
    settings: str,
    *,
    phases: Sequence[str] = (),
    loop: str = "worker",
    run: Callable[[Recorder], object] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Stream:
    """Run a job on the card that this process has, and return its stream.

    Another `run` than the worker's own has a name as its `loop`.
    """
    from oomdoctor.worker.run.job import run_job

    recorder = Recorder(say)
    if run is None:
        run_job(job, torch.device("cuda"), recorder, phases=phases)
        recorder.end_phase()
    else:
        run(recorder)
    facts: dict[str, object] = {
        "job": encode(job),
        "card": encode(card),
        "settings": settings,
        "loop": loop,
        "versions": _versions(),
    }
    return recorder.stream(facts, f"recorded from the CUDA code of torch {torch.__version__}")


def _versions() -> dict[str, Any]:
    """Return the versions of the libraries that were used."""
    return {"torch": torch.__version__, "cuda": torch.version.cuda} | {
        name: sys.modules[name].__version__ for name in _LIBRARIES if name in sys.modules
    }
