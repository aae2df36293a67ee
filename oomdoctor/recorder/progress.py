"""Whether a running command still gets on: its last output, its last step, what it works meanwhile.

A command that prints nothing and makes no step for a stated time is noted as silent, with what its
processes waited in and how much they worked; it goes on unless somebody asked for its end.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from oomdoctor.probe import processes
from oomdoctor.recorder.output_file import last_output
from oomdoctor.recorder.places import EVENTS_FILE, PROCESSES

if TYPE_CHECKING:
    from pathlib import Path

    from oomdoctor.recorder.sampling import Sampler

_STEPS = (b'"type":"step"', b'"type":"phase"', b'"type": "step"', b'"type": "phase"')
_CHUNK = 1 << 20
_MOST_TOLD = 32
_WORKED = 0.05  # of the silent time: from so much on it is work, not waiting


class Progress:
    """Looks whether anything was printed or stepped since the last look."""

    def __init__(self, folder: Path, sampler: Sampler) -> None:
        """Begin with silence from now on."""
        self._folder = folder
        self._processes = folder / PROCESSES
        self._sampler = sampler
        self._read: dict[Path, int] = {}
        self._last = time.time()
        self._work_then = 0.0

    def silent_s(self) -> float:
        """Return for how long nothing has been printed, and no step been made."""
        latest = max(last_output(self._folder) or 0.0, self._last_step())
        if latest > self._last:
            self._last = latest
            self._work_then = self._sampler.work_seconds()
        return max(0.0, time.time() - self._last)

    def silence(self, seconds: float) -> dict[str, object]:
        """Describe a silence: since when, for how long, who waited in what, who worked."""
        live = self._sampler.live()
        worked = max(0.0, self._sampler.work_seconds() - self._work_then)
        listed = []
        for pid, one in list(live.items())[:_MOST_TOLD]:
            waits = processes.waits_in(pid)
            told = {"pid": pid, "name": one.name, "state": one.state}
            listed.append(told if waits is None else {**told, "waits_in": waits})
        return {
            "since": round(self._last, 3),
            "seconds": round(seconds, 1),
            "work_seconds": round(worked, 2),
            "worked": worked > _WORKED * seconds,
            "processes": listed,
        }

    def _last_step(self) -> float:
        """Return when one of the processes has told a step or a phase that we have not seen yet."""
        with suppress(OSError):
            found = [self._has_news(one / EVENTS_FILE) for one in self._processes.iterdir()]
            return time.time() if any(found) else 0.0
        return 0.0

    def _has_news(self, path: Path) -> bool:
        at = self._read.get(path, 0)
        try:
            with path.open("rb") as file:
                file.seek(at)
                data = file.read(_CHUNK)
        except OSError:
            return False
        self._read[path] = at + len(data)
        return any(word in data for word in _STEPS)
