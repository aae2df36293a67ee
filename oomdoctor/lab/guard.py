"""What must hold before and during every trial, so that nobody else on the machine is harmed.

Cards are only looked at. Where others use one, nothing runs on it unless that was allowed, and then
below a cap that leaves them a reserve. A refusal is a GuardError with its reason.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from oomdoctor.errors import GuardError, ProbeError
from oomdoctor.lab.devices import ALL, MachineLooks, chosen, describe
from oomdoctor.memory.outside import CONTEXT
from oomdoctor.probe import host
from oomdoctor.record import dataclass
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.lab.devices import Looks
    from oomdoctor.probe.gpu import Device
    from oomdoctor.probe.host import HostMemory

GIB = 1 << 30
ON_CARDS = ("cuda", "cuda-twin")
IN_PROCESSES = (*ON_CARDS, "cpu", "virtual", "simulate")
RESERVE_BYTES, RESERVE_SHARE = 2 * GIB, 0.10
"""What stays free for the others on a shared card: the larger of the two."""
IDLE_BYTES = GIB
"""More than a driver holds on an idle card: somebody uses it, though no process is told."""
HOST_RESERVE_BYTES, HOST_RESERVE_SHARE = GIB, 0.05
HOST_LEAST_BYTES = GIB // 2
BESIDE_BYTES = CONTEXT[1]
"""What a trial takes beside its allocator, which a cap does not bind: the most that was seen."""
_PATIENCE_SECONDS = 5.0
_PAUSE_SECONDS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What trials may use, the same for all of a run.

    `room_bytes` is what the allocator of a trial can have at most. `reserve_bytes` must stay free
    on each card while a trial runs (None: nobody else is there and no cap was asked for). `names`
    are those of the cards. `notes` say what was decided, and why.
    """

    devices: tuple[str, ...] = ()
    cap_bytes: int | None = None
    room_bytes: int | None = None
    host_cap_bytes: int | None = None
    reserve_bytes: int | None = None
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a run asks of its guard.

    `visible` is CUDA_VISIBLE_DEVICES, `most` how many of its cards the trials see. With `shares`,
    others may be on a card.
    """

    backend: str
    visible: str | None = None
    most: int | None = ALL
    cap_bytes: int | None = None
    shares: bool = False


class Guard:
    """Looks before a run what is allowed, and before each trial whether that still holds."""

    def __init__(
        self,
        wish: Wish,
        *,
        looks: Looks | None = None,
        memory: Callable[[], HostMemory] = host.memory,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Look at nothing yet."""
        self.wish = wish
        self.looks = looks or MachineLooks()
        self._memory = memory
        self._sleep = sleep
        self.allowed = Allowed()
        self._first_free: dict[str, int] = {}

    def begin(self) -> Allowed:
        """Decide what trials may use; GuardError where that is nothing."""
        host_cap = self._host_cap() if self.wish.backend in IN_PROCESSES else None
        if self.wish.backend not in ON_CARDS:
            wanted = self.wish.cap_bytes
            self.allowed = Allowed(cap_bytes=wanted, room_bytes=wanted, host_cap_bytes=host_cap)
            return self.allowed
        devices = chosen(self.looks, self.wish.visible, most=self.wish.most)
        caps, rooms, reserves, notes = [], [], [], []
        for device in devices:
            cap, reserve, note = self._terms(device)
            caps.append(cap)
            rooms.append(cap if cap is not None else _room(device))
            reserves.append(reserve)
            notes.append(note)
            if device.free_bytes is not None:
                self._first_free[device.uuid] = device.free_bytes
        self.allowed = Allowed(
            devices=tuple(device.uuid for device in devices),
            cap_bytes=min((cap for cap in caps if cap is not None), default=None),
            room_bytes=min((one for one in rooms if one is not None), default=None),
            host_cap_bytes=host_cap,
            reserve_bytes=max((one for one in reserves if one is not None), default=None),
            names=tuple(dict.fromkeys(device.name for device in devices)),
            notes=tuple(notes),
        )
        return self.allowed

    def go_on(self, allowed: Allowed) -> None:
        """Take up what an earlier part of the run was allowed, so that its trials stay the same."""
        self.allowed = allowed
        self.check()

    def check(self) -> None:
        """Refuse the next trial where what was allowed no longer holds.

        The driver may need a moment to take back what the last trial held.
        """
        if self.wish.backend in IN_PROCESSES:
            self._host_cap()
        waited = 0.0
        while (reason := self._changed()) is not None:
            if waited >= _PATIENCE_SECONDS:
                raise GuardError(reason, hint=_LATER)
            self._sleep(_PAUSE_SECONDS)
            waited += _PAUSE_SECONDS

    def _host_cap(self) -> int:
        """Return what trials may take of the host, which leaves the rest of the machine alive."""
        found = self._memory()
        reserve = max(HOST_RESERVE_BYTES, int(found.total_bytes * HOST_RESERVE_SHARE))
        left = found.available_bytes - reserve
        if left < HOST_LEAST_BYTES:
            raise GuardError(
                f"the host has {format_size(found.available_bytes)} of memory left, of which"
                f" {format_size(reserve)} stay free: too little for a trial",
                hint="end what else needs memory on this machine, and go on with --resume",
            )
        return left

    def _terms(self, device: Device) -> tuple[int | None, int | None, str]:
        """Return the cap on one card, what must stay free there, and both in words."""
        others = users_of(device)
        name, wanted, free = describe(device), self.wish.cap_bytes, device.free_bytes
        if others is None:
            if wanted is None or free is None:
                return wanted, None, f"{name}: nobody else uses it"
            left = free - wanted - 2 * BESIDE_BYTES
            return wanted, left if left > 0 else None, f"{name}: cap of {format_size(wanted)}"
        if not self.wish.shares:
            raise GuardError(
                f"{name} is in use: {others}",
                hint="wait, choose another card by CUDA_VISIBLE_DEVICES, or give --share to run"
                " below a cap that leaves them a reserve",
            )
        if free is None:
            raise GuardError(f"{name} does not tell how much is free, so it cannot be shared")
        reserve = reserve_of(device)
        cap = free - reserve - BESIDE_BYTES
        if cap <= 0:
            raise GuardError(
                f"{name} has {format_size(free)} free: after {format_size(reserve)} for the others"
                f" and {format_size(BESIDE_BYTES)} outside the allocator nothing is left",
            )
        cap = cap if wanted is None else min(cap, wanted)
        said = f"{name}: shared with {others}; cap of {format_size(cap)}"
        return cap, reserve, f"{said}, {format_size(reserve)} stay free"

    def _changed(self) -> str | None:
        """Return why the next trial must not start, None where all is as it was."""
        for uuid in self.allowed.devices:
            try:
                device = self.looks.device(uuid)
            except ProbeError as error:
                return f"{uuid} cannot be looked at any more: {error.message}"
            reason = self._worse(device)
            if reason is not None:
                return reason
        return None

    def _worse(self, device: Device) -> str | None:
        others, free = users_of(device), device.free_bytes
        if others is not None and not self.wish.shares:
            return f"{describe(device)} is now in use: {others}"
        allowed = self.allowed
        if free is None or allowed.reserve_bytes is None or allowed.cap_bytes is None:
            return None
        if free >= allowed.cap_bytes + allowed.reserve_bytes:
            return None
        before = self._first_free.get(device.uuid)
        since = "" if before is None else f", {format_size(before)} when the run began"
        cap, reserve = format_size(allowed.cap_bytes), format_size(allowed.reserve_bytes)
        return (
            f"{describe(device)} has {format_size(free)} free{since}: a trial of up to {cap} would"
            f" not leave {reserve}"
        )


_LATER = "what was measured is kept: go on later with --resume"


def users_of(device: Device) -> str | None:
    """Say who uses a card beside what stems from this process; None where nobody does."""
    ours = host.descendants()
    others = [one for one in device.processes if one.pid not in ours]
    if others:
        return ", ".join(_process(one.pid, one.name, one.bytes) for one in others)
    told = any(one.pid in ours for one in device.processes)
    if not told and device.used_bytes is not None and device.used_bytes >= IDLE_BYTES:
        return f"{format_size(device.used_bytes)} by processes that are not seen from here"
    return None


def _room(device: Device) -> int | None:
    """Return what the allocator can have of a card that is ours alone."""
    return None if device.free_bytes is None else max(device.free_bytes - CONTEXT[0], 0)


def reserve_of(device: Device) -> int:
    """Return what others on a card are left with."""
    return max(RESERVE_BYTES, int((device.total_bytes or 0) * RESERVE_SHARE))


def _process(pid: int, name: str, held: int | None) -> str:
    size = "" if held is None else f", {format_size(held)}"
    return f"process {pid} ({name.rpartition('/')[2] or name}{size})"
