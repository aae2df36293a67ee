"""The same questions through NVML (the package nvidia-ml-py), which answers within a millisecond.

A library in our own process cannot be stopped when the driver hangs, so that it is asked in a
thread which is left behind then.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from oomdoctor.errors import ProbeError
from oomdoctor.probe.gpu import SECONDS, Device, GpuProcess, NoDriverError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Library: TypeAlias = Any  # pynvml has no types

T = TypeVar("T")
PACKAGE = "pynvml"


def device(uuid: str) -> Device:
    """Return one card, or a slice of one, with the processes on it."""
    return _timed(lambda library: _device(library, uuid))


def devices() -> tuple[Device, ...]:
    """Return all cards with the processes on them."""
    return _timed(_devices)


def free_bytes(uuid: str) -> int | None:
    """Return what is free on a card or a slice."""
    return _timed(lambda library: _memory(library, _handle(library, uuid))[2])


def _timed(ask: Callable[[Library], T]) -> T:
    answers: list[T] = []
    failures: list[Exception] = []

    def work() -> None:
        try:
            answers.append(ask(_library()))
        except Exception as error:  # noqa: BLE001 - told to the thread that waits
            failures.append(error)

    thread = threading.Thread(target=work, name="oomdoctor-nvml", daemon=True)
    thread.start()
    thread.join(SECONDS)
    if answers:
        return answers[0]
    if not failures:
        raise ProbeError(f"NVML did not answer within {SECONDS:.0f} s")
    if isinstance(failures[0], ProbeError):
        raise failures[0]
    raise ProbeError(f"NVML failed: {failures[0]}") from failures[0]


def _library() -> Library:
    try:
        library: Library = import_module(PACKAGE)
        library.nvmlInit()  # counted by the library: one more is free
    except ImportError as error:
        raise NoDriverError(f"{PACKAGE} is not installed (pip install nvidia-ml-py)") from error
    except Exception as error:
        raise NoDriverError(f"NVML cannot be used: {error}") from error
    return library


def _handle(library: Library, uuid: str) -> object:
    return library.nvmlDeviceGetHandleByUUID(uuid)


def _devices(library: Library) -> tuple[Device, ...]:
    found = []
    for index in range(library.nvmlDeviceGetCount()):
        handle = library.nvmlDeviceGetHandleByIndex(index)
        uuid = library.nvmlDeviceGetUUID(handle)
        name = uuid.decode() if isinstance(uuid, bytes) else str(uuid)
        found.append(_described(library, handle, name, index))
    return tuple(found)


def _device(library: Library, uuid: str) -> Device:
    return _described(library, _handle(library, uuid), uuid, 0)


def _described(library: Library, handle: object, uuid: str, index: int) -> Device:
    total, used, free = _memory(library, handle)
    name = library.nvmlDeviceGetName(handle)
    mig = False
    with suppress(library.NVMLError):  # no card without slices, and no slice, has this mode
        mig = bool(library.nvmlDeviceGetMigMode(handle)[0])
    return Device(
        index=index,
        uuid=uuid,
        name=name.decode() if isinstance(name, bytes) else str(name),
        total_bytes=total,
        used_bytes=used,
        free_bytes=free,
        mig=mig,
        processes=_processes(library, handle),
    )


def _memory(library: Library, handle: object) -> tuple[int | None, int | None, int | None]:
    try:
        found = library.nvmlDeviceGetMemoryInfo(handle)
    except library.NVMLError:  # cards that share the host's memory have none of their own
        return None, None, None
    return int(found.total), int(found.used), int(found.free)


def _processes(library: Library, handle: object) -> tuple[GpuProcess, ...]:
    try:
        found = library.nvmlDeviceGetComputeRunningProcesses(handle)
    except library.NVMLError:
        return ()
    return tuple(
        GpuProcess(
            pid=int(one.pid),
            name=_name(library, one.pid),
            bytes=None if one.usedGpuMemory is None else int(one.usedGpuMemory),
        )
        for one in found
    )


def _name(library: Library, pid: int) -> str:
    with suppress(library.NVMLError, UnicodeDecodeError):
        name = library.nvmlSystemGetProcessName(pid)
        return name.decode(errors="replace") if isinstance(name, bytes) else str(name)
    return "?"
