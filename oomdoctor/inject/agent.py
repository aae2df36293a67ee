"""The one object of a watched process: its settings, its line, and what the hooks share.

Whatever the hooks do goes through `guarded`: a fault of ours is told over the line and swallowed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from .meters import Meter

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import TypeAlias

    from .imports import Finder
    from .line import Line
    from .recording.line import FileLine
    from .settings import Settings

Library: TypeAlias = Any
_MOST_FAULTS = 20
WRAPPED: list[tuple[Library, str, Library, Library]] = []


class Agent:
    """What the hooks of one process know of each other.

    `after_step` is called with the number of each optimizer step, `around_root` gives a context for
    the call of an outermost module, `before_root` sees that module and its arguments first.
    """

    def __init__(self, settings: Settings, line: Line | FileLine, finder: Finder) -> None:
        """Know the settings; torch is not there yet."""
        self.settings = settings
        self.line = line
        self.finder = finder
        self.torch: Library = None
        self.memory: Library = None  # counts tensors of the host, where the device is `cpu`
        self.meter = Meter(self)
        self.ending = False
        self.after_error: list[Callable[[BaseException, TracebackType | None], None]] = []
        self.after_step: list[Callable[[int], None]] = []
        self.before_root: list[Callable[[Library, Library, Library], None]] = []
        self.around_root: list[Callable[[Library], AbstractContextManager[object] | None]] = []
        self._faults = 0
        self._times: dict[str, int] = {}
        self._noted: set[tuple[str, str]] = set()
        self._began = time.monotonic()

    def tell(self, kind: str, **fields: object) -> bool:
        """Send a message, with who sends it; False if nobody listens."""
        rank, world = self.place()
        message: dict[str, object] = {
            "type": kind,
            "pid": os.getpid(),
            "rank": rank,
            "world": world,
            "at": round(time.monotonic() - self._began, 3),
            **fields,
        }
        return self.line.send(message)

    def place(self) -> tuple[int | None, int]:
        """Return the rank and the number of ranks, as the process knows them by now."""
        distributed = sys.modules.get("torch.distributed")
        with contextlib.suppress(Exception):
            if distributed is not None and distributed.is_initialized():
                return distributed.get_rank(), distributed.get_world_size()
        with contextlib.suppress(KeyError, ValueError):
            return int(os.environ["RANK"]), int(os.environ.get("WORLD_SIZE") or 1)
        return None, 1

    def intervened(self, name: str, text: str = "") -> None:
        """Count that an intervention took effect; told at each power of two."""
        times = self._times.get(name, 0) + 1
        self._times[name] = times
        if times & (times - 1) == 0:
            self.tell("intervened", name=name, times=times, text=text)

    def note(self, name: str, text: str) -> None:
        """Tell once what an intervention could not do, or has seen."""
        if (name, text) not in self._noted:
            self._noted.add((name, text))
            self.tell("note", text=f"{name}: {text}")

    def held(self, text: str) -> None:
        """Tell once where something is kept from step to step."""
        if ("held", text) not in self._noted:
            self._noted.add(("held", text))
            self.tell("held", text=text)

    def guarded(self, work: Callable[..., Library]) -> Callable[..., Library]:
        """Return the function as one that never raises: what goes wrong in it is told."""

        @functools.wraps(work)
        def call(*arguments: Library, **named: Library) -> Library:
            try:
                return work(*arguments, **named)
            except Exception as error:  # noqa: BLE001 - a hook never breaks a program
                self.fault(getattr(work, "__qualname__", repr(work)), error)
                return None

        return call

    def fault(self, where: str, error: BaseException) -> None:
        """Tell that a hook of ours failed; a hook that fails each time is told a few times."""
        self._faults += 1
        if self._faults <= _MOST_FAULTS:
            self.tell("fault", where=where, error=repr(error)[:500])

    def when_imported(self, name: str, patch: Callable[[Library], None]) -> None:
        """Call a guarded `patch` with a module once the program has imported it."""
        self.finder.when_imported(name, self.guarded(patch))

    def is_ours(self) -> bool:
        """Say whether the process may be ended: it is no worker of a DataLoader."""
        data = sys.modules.get("torch.utils.data")
        return not self.ending and (data is None or data.get_worker_info() is None)


def wrap(owner: Library, name: str, around: Callable[..., Library]) -> None:
    """Replace a function by `around(original, *arguments, **named)` under the same name.

    A function that its own module holds as well is replaced there, too: it is pickled by its name.
    """
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(*arguments: Library, **named: Library) -> Library:
        return around(original, *arguments, **named)

    home = sys.modules.get(getattr(original, "__module__", None) or "")
    for place in {id(one): one for one in (owner, home) if one is not None}.values():
        if vars(place).get(name) is original or place is owner:
            WRAPPED.append((place, name, vars(place).get(name), call))
            setattr(place, name, call)


def unwrap_all() -> None:
    """Leave every function that was wrapped as it was, unless somebody replaced it since."""
    while WRAPPED:
        owner, name, original, ours = WRAPPED.pop()
        if vars(owner).get(name) is not ours:
            continue
        if original is None:  # it was inherited
            delattr(owner, name)
        else:
            setattr(owner, name, original)


def start_thread(work: Callable[[], None], name: str) -> None:
    """Start a thread that ends with the process."""
    threading.Thread(target=work, name=name, daemon=True).start()
