"""Who wants to hear of each input that is read: names for redaction are learned from them.

An input is read once, so that standard input need not be held and a large file not be read again.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oomdoctor.evidence.source import Source

    Hearer = Callable[[Source], None]

_hearers: list[Hearer] = []


@contextmanager
def heard_by(hearer: Hearer) -> Iterator[None]:
    """Tell `hearer` of every source that this process reads meanwhile."""
    _hearers.append(hearer)
    try:
        yield
    finally:
        if hearer in _hearers:
            _hearers.remove(hearer)


def tell(source: Source) -> None:
    """Tell all who listen of a source that was read."""
    for hearer in _hearers:
        hearer(source)


def hush() -> None:
    """Tell nobody: what a process of its own hears is lost with it."""
    _hearers.clear()
