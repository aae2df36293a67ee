"""Import hooks: a function is called with a module once the program has imported it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` is not imported at every start for that
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, TypeAlias

    # a module or object of a library that these files cannot import to know its type
    Library: TypeAlias = Any


class Finder:
    """Lets the other finders find a module, and has it patched after its own loader ran."""

    def __init__(self) -> None:
        """Wait for nothing yet."""
        self._patches: dict[str, list[Callable[[Library], None]]] = {}
        self._busy: set[str] = set()

    def when_imported(self, name: str, patch: Callable[[Library], None]) -> None:
        """Call `patch` with the module once it is imported; now, if it is already."""
        if name in sys.modules:
            patch(sys.modules[name])
        else:
            self._patches.setdefault(name, []).append(patch)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that is waited for, as another finder gives it."""
        if fullname not in self._patches or fullname in self._busy:
            return None
        self._busy.add(fullname)
        try:
            spec = self._of_the_others(fullname, path, target)
        finally:
            self._busy.discard(fullname)
        if spec is not None and spec.loader is not None:
            self._patch_after(spec.loader, fullname)
        return spec

    def _of_the_others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(fullname, path, target) if find and finder is not self else None
            if spec is not None:
                found: ModuleSpec = spec
                return found
        return None

    def _patch_after(self, loader: Library, name: str) -> None:
        """Let this one loader of this one module call the patches after it has run the module."""
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            run(module)
            for patch in self._patches.pop(name, []):
                patch(module)

        try:
            loader.exec_module = exec_module
        except AttributeError:  # a loader of built-in or frozen modules: none that we wait for
            return
