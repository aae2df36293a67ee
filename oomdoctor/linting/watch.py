"""Look at files again and again, and act when one was saved.

It asks for time stamps: that works on every file system, and a handful of configs costs nothing.
An editor that saves by renaming makes the file vanish for a moment, and some write twice: the
action waits until nothing has changed for a while.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

POLL_SECONDS = 0.25
QUIET_SECONDS = 0.2
REST = 9  # a tenth of the time at most is spent looking

Stamp: TypeAlias = "tuple[int, int, int] | None"


def stamp_of(path: str) -> Stamp:
    """Return what changes when a file is saved; None while there is no such file."""
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return (seen.st_mtime_ns, seen.st_size, seen.st_ino)


class Watcher:
    """Knows what the files looked like, and tells when they have changed and come to rest."""

    def __init__(
        self,
        paths: Callable[[], Iterable[str]],
        *,
        clock: Callable[[], float] = time.monotonic,
        stamp: Callable[[str], Stamp] = stamp_of,
        quiet: float = QUIET_SECONDS,
    ) -> None:
        """Watch the files that `paths` names each time anew, so that new ones are seen."""
        self._paths = paths
        self._clock = clock
        self._stamp = stamp
        self._quiet = quiet
        self.took = 0.0
        self._acted = self._last = self._look()
        self._since = clock()

    def _look(self) -> Mapping[str, Stamp]:
        start = self._clock()
        seen = {path: self._stamp(path) for path in self._paths()}
        self.took = self._clock() - start
        return seen

    def changed(self) -> tuple[str, ...]:
        """Return the files that were saved since the last time, once they have come to rest."""
        now = self._look()
        if now != self._last:
            self._last = now
            self._since = self._clock()
        if now == self._acted or self._clock() - self._since < self._quiet:
            return ()
        if any(stamp is None for stamp in now.values()) and not self._is_gone_for_long():
            return ()
        before, self._acted = self._acted, now
        every = dict.fromkeys([*now, *before])
        return tuple(path for path in every if before.get(path) != now.get(path))

    def _is_gone_for_long(self) -> bool:
        return self._clock() - self._since >= 4 * self._quiet


def watch(
    watcher: Watcher,
    show: Callable[[tuple[str, ...]], None],
    *,
    sleep: Callable[[float], None] = time.sleep,
    poll: float = POLL_SECONDS,
) -> None:
    """Show once, then after each change; ends only by KeyboardInterrupt, which goes through."""
    show(())
    while True:
        sleep(max(poll, REST * watcher.took))  # a large folder must not keep a core busy
        changed = watcher.changed()
        if changed:
            show(changed)
