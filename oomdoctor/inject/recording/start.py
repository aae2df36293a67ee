"""Waits in a process that has just started until there is something to record.

Most processes of a job import no torch and do not fail. So this file imports nothing that Python
has not imported by itself: the rest comes with torch, or with an exception that nothing catches.
"""

from __future__ import annotations

import atexit
import sys

from ..imports import Finder
from . import note_fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any

    from .whole import Recording


class Waiting:
    """A process of which nothing is recorded yet."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Wait for torch and for failures."""
        self._environment = environment
        self._whole: Recording | None = None
        self._failed = False
        self._finder = Finder()
        self._printed = sys.excepthook
        self._hook = self._of_program
        self._printed_by_threads: Any = None
        self._thread_hook = self._of_thread
        sys.excepthook = self._hook
        sys.meta_path.insert(0, self._finder)
        self._finder.when_imported("torch", self._begin_with)
        self._finder.when_imported("threading", self._watch_threads)
        atexit.register(self._at_exit)

    def _begin_with(self, module: Any) -> None:
        """Begin with a library: the recording then waits for it itself."""
        del module
        self._begin()

    def _begin(self) -> Recording | None:
        if self._whole is not None or self._failed:
            return None
        try:
            self._give_back()
            from .whole import Recording

            run = self._environment["OOMDOCTOR_RUN"]
            self._whole = Recording(run, self._environment, self._finder)
        except Exception as error:  # noqa: BLE001 - a program goes on, whatever becomes of us
            self._failed = True
            note_fault(self._environment, error)
        return self._whole

    def _give_back(self) -> None:
        """Leave the hooks to the recording, where nobody has put another in their place."""
        if sys.excepthook is self._hook:
            sys.excepthook = self._printed
        threads: Any = sys.modules.get("threading")
        if threads is not None and threads.excepthook is self._thread_hook:
            threads.excepthook = self._printed_by_threads

    def _watch_threads(self, module: Any) -> None:
        if self._whole is None and not self._failed:
            self._printed_by_threads = module.excepthook
            module.excepthook = self._thread_hook

    def _of_program(
        self, kind: type[BaseException], value: BaseException, trace: TracebackType | None
    ) -> None:
        whole = None if issubclass(kind, (SystemExit, KeyboardInterrupt)) else self._begin()
        if whole is None:
            self._printed(kind, value, trace)
        else:
            whole.exceptions.of_program(kind, value, trace)

    def _of_thread(self, given: threading.ExceptHookArgs) -> None:
        whole = self._begin() if given.exc_value is not None else None
        if whole is not None:
            whole.exceptions.of_thread(given)
        elif self._printed_by_threads is not None:
            self._printed_by_threads(given)

    def _at_exit(self) -> None:
        """Tell of a failure that the program's own hook has printed."""
        if self._whole is None and isinstance(getattr(sys, "last_value", None), Exception):
            whole = self._begin()
            if whole is not None:
                whole.at_exit()


def start(environment: Mapping[str, str]) -> Waiting:
    """Wait in this process."""
    return Waiting(environment)
