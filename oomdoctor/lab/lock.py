"""One run at a time on a device: a lock on a file in the common folder for temporary files.

The system lets go of it when the process that holds it ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import GuardError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NAME_LENGTH = 100
_WRITABLE = os.O_RDWR | os.O_CREAT
_HOLDER_BYTES = 64


@contextmanager
def locked(devices: Sequence[str], *, folder: Path | None = None) -> Iterator[None]:
    """Hold the locks of devices, by UUID; GuardError where another run holds one of them."""
    place = folder or Path(tempfile.gettempdir())
    with ExitStack() as held:
        for device in sorted(set(devices)):  # in one order, so that two runs never wait in a ring
            held.enter_context(_one(device, place))
        yield


@contextmanager
def _one(device: str, place: Path) -> Iterator[None]:
    path = place / f"oomdoctor-{_plain(device)}.lock"
    number = _opened(path)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise GuardError(
                f"another run of oomdoctor{_holder(number)} makes trials on {device}",
                hint="wait until it is done, or choose another device by CUDA_VISIBLE_DEVICES",
            ) from error
        _sign(number)
        yield
    finally:
        os.close(number)


def _opened(path: Path) -> int:
    """Open the file of a lock; that of another user can be locked without being written."""
    common = os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, _WRITABLE | common, 0o644)
    except OSError:
        try:
            return os.open(path, os.O_RDONLY | common)
        except OSError as error:
            raise GuardError(
                f"{path} cannot be locked: {error.strerror}",
                hint="set TMPDIR to a folder that all users of the device share",
            ) from error


def _sign(number: int) -> None:
    """Write whose lock it is, for the message of who comes next."""
    with suppress(OSError):  # another user's file, or a full disk: the lock is held all the same
        os.ftruncate(number, 0)
        os.pwrite(number, str(os.getpid()).encode(), 0)


def _holder(number: int) -> str:
    with suppress(OSError):
        text = os.pread(number, _HOLDER_BYTES, 0).decode(errors="replace")
        if text.isdecimal():
            return f" (process {text})"
    return ""


def _plain(device: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "_", device)[:_NAME_LENGTH]
