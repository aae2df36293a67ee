"""The cards that trials would run on, as CUDA_VISIBLE_DEVICES chooses them, looked at read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from oomdoctor.errors import GuardError, ProbeError
from oomdoctor.probe import gpu, nvml
from oomdoctor.probe.gpu import NoDriverError

if TYPE_CHECKING:
    from oomdoctor.probe.gpu import Device

ALL = None
_SLICE = "MIG-"
_CARD = "GPU-"


class Looks(Protocol):
    """Looks at cards: nvidia-smi and NVML, or a test."""

    def devices(self) -> tuple[Device, ...]:
        """Return all cards; ProbeError where nobody can tell."""

    def device(self, uuid: str) -> Device:
        """Return one card or slice with the processes on it."""

    def free_bytes(self, uuid: str) -> int | None:
        """Return what is free on one, as quickly as can be."""


class MachineLooks:
    """Asks nvidia-smi, and NVML where it is installed and quicker or the only one that knows."""

    def __init__(self) -> None:
        """Suppose that NVML is there."""
        self._quick = True

    def devices(self) -> tuple[Device, ...]:
        """Return all cards with the processes on them."""
        return gpu.devices()

    def device(self, uuid: str) -> Device:
        """Return one card, or a slice, of which NVML alone tells."""
        if uuid.startswith(_SLICE):
            return nvml.device(uuid)
        found = [one for one in gpu.devices() if one.uuid == uuid]
        if not found:
            raise ProbeError(f"nvidia-smi no longer lists {uuid}")
        return found[0]

    def free_bytes(self, uuid: str) -> int | None:
        """Return what is free on one."""
        if self._quick:
            try:
                return nvml.free_bytes(uuid)
            except NoDriverError:
                self._quick = False
        return gpu.free_bytes(uuid)


def chosen(looks: Looks, visible: str | None, *, most: int | None = ALL) -> tuple[Device, ...]:
    """Return the cards that CUDA_VISIBLE_DEVICES names, at most so many; GuardError without any."""
    if visible is None:
        found = tuple(_look(looks))
    else:
        names = [name.strip() for name in visible.split(",")]
        found = tuple(_named(name, looks) for name in _until_invalid(names))
    if not found:
        shown = "no card is there" if visible is None else f"CUDA_VISIBLE_DEVICES is {visible!r}"
        raise GuardError(f"no card to run on: {shown}", hint="--backend simulate needs none")
    for one in found[:most]:
        if one.mig:
            raise GuardError(
                f"{describe(one)} is cut into MIG slices, and none is chosen",
                hint="set CUDA_VISIBLE_DEVICES to a slice's UUID (MIG-...) from `nvidia-smi -L`",
            )
    return found[:most]


def describe(device: Device) -> str:
    """Print a card so that a person finds it."""
    return f"card {device.index} ({device.name}, {device.uuid})"


def _until_invalid(names: list[str]) -> list[str]:
    """Return the names that CUDA takes: it stops at the first one that is none."""
    kept: list[str] = []
    for name in names:
        if not (name.isdecimal() or name.startswith((_SLICE, _CARD))):
            break
        kept.append(name)
    return kept


def _look(looks: Looks) -> tuple[Device, ...]:
    try:
        return looks.devices()
    except ProbeError as error:
        raise GuardError(
            f"the cards cannot be looked at, so nothing runs on them: {error.message}",
            hint=error.hint or "--backend simulate or cpu needs no card",
        ) from error


def _named(name: str, looks: Looks) -> Device:
    if name.startswith(_SLICE):
        try:
            return looks.device(name)
        except ProbeError as error:
            raise GuardError(
                f"the slice {name} cannot be looked at: {error.message}",
                hint="only NVML tells of slices: pip install nvidia-ml-py",
            ) from error
    found = [one for one in _look(looks) if str(one.index) == name or one.uuid.startswith(name)]
    if not found:
        raise GuardError(f"CUDA_VISIBLE_DEVICES names {name!r}, and no card is called so")
    return found[0]
