"""Sees calls of outermost modules at next to no cost: by their own classes, once they are known.

`roots.py` sees every one of them, and to replace `Module.__call__` twice a call touches every class
below it, which takes a tenth of a millisecond to a whole one. Here that is done until an outermost
module is seen; then `__call__` of its own class takes over, and now and then the search is repeated
for others. What torch.compile traces passes through as if nothing were there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from ..agent import Agent

Library: TypeAlias = Any
_FIRST_SECONDS = 0.5  # until the search is repeated; then twice as long, and so on
_MOST_SECONDS = 30.0
_LOOKS = 3  # calls of known ones, until a search ends
# classes of the program itself may be sent to other processes by value, with all they hold; an
# attribute of a compiled module is not its class's own
_BY_VALUE = ("__main__", "__mp_main__")


class RootClasses:
    """The classes of a process whose objects were called as outermost modules."""

    def __init__(self, agent: Agent) -> None:
        """Wait for torch."""
        self._agent = agent
        self._torch: Library = None
        self._original: Library = None
        self._search: Library = None
        self._known: dict[Library, Library] = {}
        self._owned: dict[Library, Library] = {}
        self._is_inside = False
        self._stays = False
        self._looks = 0
        self._pause = _FIRST_SECONDS
        self._next = 0.0

    def install(self, torch: Library) -> None:
        """Begin to search."""
        self._torch = torch
        self._original = torch.nn.Module.__call__
        self._search = self._around(self._original)
        torch.nn.Module.__call__ = self._search

    def remove(self) -> None:
        """Leave every class as it was."""
        if self._is_searching():
            self._torch.nn.Module.__call__ = self._original
        for kind, ours in self._known.items():
            if vars(kind).get("__call__") is not ours:
                continue
            if kind in self._owned:
                kind.__call__ = self._owned[kind]
            else:
                del kind.__call__
        self._known.clear()

    def _around(self, original: Library) -> Library:
        """Return a `__call__` that tells of a call which comes from outside of all modules."""
        is_compiling = _question(self._torch)

        def __call__(module: Library, *given: Library, **named: Library) -> Library:  # noqa: N807 - the name that profilers show
            if is_compiling() or self._is_inside:
                return original(module, *given, **named)
            self._is_inside = True
            try:
                self._saw(module, given, named)
                return original(module, *given, **named)
            finally:
                self._is_inside = False

        return __call__

    def _saw(self, module: Library, given: Library, named: Library) -> None:
        kind = type(module)
        if self._is_searching():
            self._looks += 1
            if kind not in self._known:
                self._agent.guarded(self._take_over)(kind)
            elif self._looks > _LOOKS and not self._stays:
                self._end_search()
        elif time.monotonic() >= self._next:
            self._looks = 0
            if self._torch.nn.Module.__call__ is self._original:
                self._torch.nn.Module.__call__ = self._search
        for see in self._agent.before_root:
            self._agent.guarded(see)(module, given, named)

    def _take_over(self, kind: Library) -> None:
        if issubclass(kind, self._torch.jit.ScriptModule) or kind.__module__ in _BY_VALUE:
            self._stays = True
            return
        own = vars(kind).get("__call__")
        if own is not None:
            self._owned[kind] = own
        # what stands above is asked for at each call: others replace it for a while, too
        ours = self._around(own or _above(kind))
        self._known[kind] = kind.__call__ = ours
        self._pause = _FIRST_SECONDS

    def _is_searching(self) -> bool:
        return self._torch is not None and self._torch.nn.Module.__call__ is self._search

    def _end_search(self) -> None:
        self._torch.nn.Module.__call__ = self._original
        self._next = time.monotonic() + self._pause
        self._pause = min(_MOST_SECONDS, 2 * self._pause)


def _above(kind: Library) -> Callable[..., Library]:
    """Return what calls the `__call__` that a class has from those above it."""

    def call(module: Library, *given: Library, **named: Library) -> Library:
        above: Library = super(kind, module)
        return above.__call__(*given, **named)

    return call


def _question(torch: Library) -> Callable[[], bool]:
    """Return torch's function that says whether it traces a program just now."""
    compiler = getattr(torch, "compiler", None)
    asked = getattr(compiler, "is_compiling", None) or getattr(torch._dynamo, "is_compiling", None)
    return asked or (lambda: False)
