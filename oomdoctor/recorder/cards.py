"""The cards of the machine while a command runs: asked by a thread, as often as that is cheap.

[{"index": 0, "uuid": "GPU-3f8c...", "total_bytes": 85899345920, "used_bytes": 1024, ...}]
"""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import OomdoctorError
from oomdoctor.probe.gpu import NoDriverError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.probe.gpu import Device

    Look = Callable[[], tuple[Device, ...]]

_EACH_S = 1.0
_WITH_PROGRAM_S = 30.0  # nvidia-smi takes a processor for up to a second each time it is asked
_MOST_FAILURES = 3
_SHARES = 500
_DRIVER = "/dev/nvidiactl"


class Cards:
    """Asks for the cards until it is stopped; after some failures in a row nobody is asked."""

    def __init__(self, ways: Sequence[tuple[Look, float]]) -> None:
        """Begin to ask; each way has the seconds between two questions, the best one first."""
        self.first: tuple[Device, ...] = ()
        self._ways = ways
        self._devices: tuple[Device, ...] | None = None
        self._stop = threading.Event()
        self._asked = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="oomdoctor-cards", daemon=True)
        self._thread.start()

    def latest(self, own: frozenset[int]) -> list[dict[str, object]] | None:
        """Return what was told since the last call, split into what `own` processes hold and not.

        Where the processes of a card are not seen from here, nobody knows whose its bytes are.
        """
        devices, self._devices = self._devices, None
        return None if devices is None else [as_told(one, own) for one in devices]

    def known(self, seconds: float) -> tuple[Device, ...]:
        """Return the cards as they were at first; wait so long for that."""
        self._asked.wait(seconds)
        return self.first

    def stop(self) -> None:
        """Ask no more."""
        self._stop.set()

    def _ask(self) -> None:
        for look, each_s in self._ways:
            failures = 0
            while not self._stop.is_set() and failures < _MOST_FAILURES:
                began = time.thread_time()
                try:
                    self._devices = look()
                    self.first = self.first or self._devices
                    failures = 0
                except NoDriverError:
                    break
                except OomdoctorError:
                    failures += 1
                self._asked.set()
                self._stop.wait(max(each_s, _SHARES * (time.thread_time() - began)))
        self._asked.set()


def as_told(device: Device, own: frozenset[int]) -> dict[str, object]:
    """Return the figures of a card as a sample has them."""
    ours = [one.bytes for one in device.processes if one.pid in own]
    seen = all(Path(f"/proc/{one.pid}").exists() for one in device.processes)
    held = sum(one or 0 for one in ours) if (ours or seen) and None not in ours else None
    used = device.used_bytes
    found: dict[str, object] = {
        "index": device.index,
        "uuid": device.uuid,
        "name": device.name,
        "total_bytes": device.total_bytes,
        "used_bytes": used,
        "ours_bytes": held,
        "others_bytes": max(0, used - held) if used is not None and held is not None else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def cards_here() -> Cards | None:
    """Begin to ask for the cards of this machine; None where there are none to ask for."""
    if not Path(_DRIVER).exists() and shutil.which("nvidia-smi") is None:
        return None
    from oomdoctor.probe import gpu, nvml

    return Cards(((nvml.devices, _EACH_S), (gpu.devices, _WITH_PROGRAM_S)))


def cards_told_by(look: Look) -> Cards:
    """Begin to ask for cards that the machine does not have."""
    return Cards(((look, _EACH_S),))
