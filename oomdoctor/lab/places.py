"""A place where trials run: a back end with the guard of the card it runs on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from oomdoctor.errors import GuardError
from oomdoctor.lab.lock import locked
from oomdoctor.lab.watch import Watcher
from oomdoctor.model.trial import REFUSED
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from oomdoctor.lab.backend import Backend
    from oomdoctor.lab.guard import Allowed, Guard
    from oomdoctor.model.trial import TrialResult, TrialSpec

    Stop = Callable[[], str | None]
    MakeBackend = Callable[[Stop, Mapping[str, str]], Backend]

VISIBLE = "CUDA_VISIBLE_DEVICES"


class Place:
    """Runs trials one after the other, each behind its guard."""

    def __init__(self, guard: Guard, make: MakeBackend | None = None) -> None:
        """Make no back end yet: which card it gets is known once the guard has looked."""
        self.guard = guard
        self._make = make
        self._backend: Backend | None = None
        self._watcher: Watcher | None = None
        self._stopped: str | None = None

    @contextmanager
    def opened(self, earlier: Allowed | None = None) -> Iterator[Allowed]:
        """Look at the place, lock its cards, and give what is allowed there.

        `earlier` is what the part of the run before had: its caps are kept, so that trials stay
        the same.
        """
        allowed = self.guard.begin()
        with locked(allowed.devices):
            if earlier is not None:
                cap, host_cap = earlier.cap_bytes, earlier.host_cap_bytes
                self.guard.go_on(replace(allowed, cap_bytes=cap, host_cap_bytes=host_cap))
            try:
                yield self.guard.allowed
            finally:
                close = getattr(self._backend, "close", None)
                if close is not None:
                    close()
                self._backend = None

    def run(self, spec: TrialSpec, hear: Callable[[str], None]) -> TrialResult:
        """Run one trial; GuardError where the guard refuses it, or ends it for others' sake."""
        self.guard.check()
        shares = self.guard.wish.shares
        with Watcher(self.guard.looks, self.guard.allowed, shares=shares) as self._watcher:
            result = self._own_backend().run(spec, hear)
            reason = self._watcher.reason()
        if reason is not None:
            raise GuardError(reason, hint="the trial was ended; go on later with --resume")
        if result.outcome == REFUSED and self._stopped is None:
            raise GuardError(result.reason or "the trial was refused")
        return result

    def use(self, make: MakeBackend) -> None:
        """Say what makes the back end, where that is known only now."""
        self._make = make

    def stop(self, reason: str) -> None:
        """Let the running trial end, and all that would follow."""
        self._stopped = reason

    def _own_backend(self) -> Backend:
        if self._backend is None:
            if self._make is None:
                raise ValueError("a place without a back end was asked to run a trial")
            devices = self.guard.allowed.devices
            environment = {VISIBLE: ",".join(devices)} if devices else {}
            self._backend = self._make(self._reason, environment)
        return self._backend

    def _reason(self) -> str | None:
        """Return why the running trial has to end: what a back end polls."""
        if self._stopped is not None or self._watcher is None:
            return self._stopped
        return self._watcher.reason()
