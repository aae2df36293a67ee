"""What cards there are, how much of them is free, and who uses them: asked, never changed.

$ nvidia-smi --query-gpu=index,uuid,name,memory.total,memory.used,memory.free,mig.mode.current ...
0, GPU-3f8c..., NVIDIA A100-SXM4-80GB, 81920, 4, 81251, Disabled
$ nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory ...
GPU-3f8c..., 4711, /usr/bin/python3, 79826
"""

from __future__ import annotations

import csv
import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from oomdoctor.errors import ProbeError
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Ask = Callable[[Sequence[str]], str]

SECONDS = 2.0
_LAST_SECONDS = 0.5  # that a program which was killed has to be gone
MIB = 1 << 20
PROGRAM = "nvidia-smi"
_FORM = "--format=csv,noheader,nounits"
_CARDS = "index,uuid,name,memory.total,memory.used,memory.free,mig.mode.current"
_USERS = "gpu_uuid,pid,process_name,used_memory"
_COLUMNS = 7
_USER_COLUMNS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that uses a card; `bytes` is None where the driver does not say how much."""

    pid: int
    name: str
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A card, or a slice of one. Without a figure the driver does not tell it.

    `mig` says that a card is cut into slices, so that nothing runs on it as a whole.
    """

    index: int
    uuid: str
    name: str
    total_bytes: int | None
    used_bytes: int | None
    free_bytes: int | None
    mig: bool = False
    processes: tuple[GpuProcess, ...] = ()


class NoDriverError(ProbeError):
    """There is nothing to ask: no nvidia-smi, no NVML."""


def smi(arguments: Sequence[str]) -> str:
    """Return what nvidia-smi prints; ProbeError where it fails or takes too long."""
    try:
        process = subprocess.Popen(
            [PROGRAM, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise NoDriverError(f"{PROGRAM} cannot be started: {error.strerror}") from error
    try:
        printed, complaint = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        _end(process)
        raise ProbeError(
            f"{PROGRAM} did not answer within {SECONDS:.0f} s",
            hint="a driver that hangs answers nobody: look at it with `nvidia-smi` and dmesg",
        ) from error
    except BaseException:
        _end(process)
        raise
    if process.returncode:
        said = (printed + complaint).strip().partition("\n")[0]
        raise ProbeError(f"{PROGRAM} failed with status {process.returncode}: {said}")
    return printed


def _end(process: subprocess.Popen[str]) -> None:
    """End the program and what it started; where the driver holds it, do not wait for that."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_LAST_SECONDS)


def devices(ask: Ask = smi) -> tuple[Device, ...]:
    """Return all cards with the processes on them."""
    users: dict[str, list[GpuProcess]] = {}
    for uuid, process in _users(ask([f"--query-compute-apps={_USERS}", _FORM])):
        users.setdefault(uuid, []).append(process)
    return tuple(_cards(ask([f"--query-gpu={_CARDS}", _FORM]), users))


def free_bytes(uuid: str, ask: Ask = smi) -> int | None:
    """Return what is free on one card, by the quickest question; None where nobody says."""
    answer = ask([f"--id={uuid}", "--query-gpu=memory.free", _FORM])
    return _mib(answer.strip().partition("\n")[0])


def _cards(text: str, users: dict[str, list[GpuProcess]]) -> Iterator[Device]:
    for row in _rows(text):
        if len(row) < _COLUMNS or not row[0].isdecimal():
            raise ProbeError(f"{PROGRAM} answered what is no row of a card: {', '.join(row)!r:.80}")
        index, uuid, name, total, used, free, mig = row[:_COLUMNS]
        yield Device(
            index=int(index),
            uuid=uuid,
            name=name,
            total_bytes=_mib(total),
            used_bytes=_mib(used),
            free_bytes=_mib(free),
            mig=mig.lower() == "enabled",
            processes=tuple(users.get(uuid, ())),
        )


def _users(text: str) -> Iterator[tuple[str, GpuProcess]]:
    for row in _rows(text):
        if len(row) >= _USER_COLUMNS and row[1].isdecimal():
            name = ",".join(row[2:-1])  # a path may hold a comma
            yield row[0], GpuProcess(pid=int(row[1]), name=name, bytes=_mib(row[-1]))


def _rows(text: str) -> Iterator[list[str]]:
    lines = [line for line in text.splitlines() if line.strip()]
    for row in csv.reader(lines, skipinitialspace=True):
        yield [cell.strip() for cell in row]


def _mib(text: str) -> int | None:
    """Return the bytes of a figure in MiB; None for `[N/A]` and its kin."""
    return int(text) * MIB if text.isdecimal() else None
