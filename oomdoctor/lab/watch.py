"""Watches the cards while a trial runs, and says when it has to end for the sake of others."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from oomdoctor.errors import ProbeError
from oomdoctor.lab.devices import describe
from oomdoctor.probe import host
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from typing_extensions import Self

    from oomdoctor.lab.devices import Looks
    from oomdoctor.lab.guard import Allowed
    from oomdoctor.probe.gpu import Device

EVERY_SECONDS = 0.2
_LOOK_ROUNDS = 10
"""Who is on a card costs more to ask than how much is free: every tenth time."""
_MOST_FAILURES = 3


class Watcher:
    """Looks every 200 ms; `reason` is what a back end polls while its trial runs."""

    def __init__(
        self, looks: Looks, allowed: Allowed, *, shares: bool, every: float = EVERY_SECONDS
    ) -> None:
        """Watch nothing yet."""
        self._looks = looks
        self._allowed = allowed
        self._shares = shares
        self._every = every
        self._found: str | None = None
        self._failures = 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def reason(self) -> str | None:
        """Return why the trial has to end, None while all is well."""
        return self._found

    def __enter__(self) -> Self:
        """Begin to watch, where there is something to watch."""
        if self._allowed.devices:
            self._thread = threading.Thread(target=self._watch, name="oomdoctor-watch", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Watch no longer; a look that hangs is left behind."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(self._every)

    def _watch(self) -> None:
        rounds = 0
        while self._found is None and not self._over.wait(self._every):
            rounds += 1
            for uuid in self._allowed.devices:
                self._found = self._found or self._look(uuid, whole=rounds % _LOOK_ROUNDS == 0)

    def _look(self, uuid: str, *, whole: bool) -> str | None:
        reserve = self._allowed.reserve_bytes
        try:
            if whole and not self._shares:
                newcomer = _newcomer(self._looks.device(uuid))
                if newcomer is not None:
                    return newcomer
            free = None if reserve is None else self._looks.free_bytes(uuid)
        except ProbeError as error:
            self._failures += 1
            if self._failures < _MOST_FAILURES or reserve is None:
                return None
            return f"{uuid} cannot be looked at any more: {error.message}"
        self._failures = 0
        if free is not None and reserve is not None and free < reserve:
            return (
                f"{uuid} has {format_size(free)} free while a trial runs: less than the"
                f" {format_size(reserve)} that were to stay so"
            )
        return None


def _newcomer(device: Device) -> str | None:
    """Say who came onto a card while a trial of ours runs there.

    In a container the driver may tell the numbers that processes have outside of it; those that
    are not seen from here are not judged, for our own would be among them.
    """
    ours = host.descendants()
    for one in device.processes:
        if one.pid not in ours and host.is_here(one.pid):
            return f"process {one.pid} ({one.name}) came onto {describe(device)}"
    return None
