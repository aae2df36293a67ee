"""bitsandbytes on the fake card: its own CUDA code in Python over a library that does nothing.

What its kernels allocate, the Python side of `bitsandbytes.backends.cuda` allocates before it calls
the native library: quantised weights, scales, dequantised weights, int8 products. So that side is
the real one of the installed version, whatever it is, and only the library under it is replaced.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PACKAGE = "bitsandbytes"
LIBRARY_OWNER = f"{PACKAGE}.cextension"
KERNELS = f"{PACKAGE}.backends.cuda.ops"


class _Function:
    """A function of the native library: takes anything, and succeeds."""

    def __init__(self) -> None:
        self.argtypes: Sequence[object] = ()
        self.restype: object = None

    def __call__(self, *_arguments: object) -> int:
        return 0


class NativeStandIn:
    """The native library, every function of which does nothing and returns 0."""

    compiled_with_cuda = True

    def __init__(self) -> None:
        """Have no function until one is asked for."""
        self._functions: dict[str, _Function] = {}

    def __getattr__(self, name: str) -> _Function:
        """Return a function by its name."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self._functions.setdefault(name, _Function())

    def __getitem__(self, name: str) -> _Function:
        """Return a function by its name."""
        return self._functions.setdefault(name, _Function())


class BitsAndBytes:
    """Puts the stand-in in, now or when the package is imported."""

    def __init__(self) -> None:
        """Prepare the stand-in."""
        self._library = NativeStandIn()
        self._finder: _Finder | None = None

    def install(self) -> None:
        """Replace the library where it is loaded, and wait for it where it is not."""
        if PACKAGE in sys.modules:
            self._replace()
            return
        self._finder = _Finder(self._library)
        sys.meta_path.insert(0, self._finder)

    def remove(self) -> None:
        """Wait no more; what was replaced stays, since nothing else can run these kernels."""
        if self._finder is not None and self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)

    def _replace(self) -> None:
        for name, module in list(sys.modules.items()):
            if name.startswith(PACKAGE) and "lib" in vars(module) and ".cpu." not in name:
                vars(module)["lib"] = self._library
        importlib.import_module(KERNELS)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the module that loads the native library, to replace what it loaded."""

    def __init__(self, library: NativeStandIn) -> None:
        self._library = library

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module's own spec with a loader of ours around its loader."""
        if fullname != LIBRARY_OWNER:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._library)
        return spec


class _Loader(importlib.abc.Loader):
    """Runs the module without looking for a GPU, and then gives it the stand-in."""

    def __init__(self, loader: Any, library: NativeStandIn) -> None:
        self._loader = loader
        self._library = library

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Make the module as its own loader does."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Run the module as if there were no card, so that it loads the library for the host."""
        import torch

        answer = torch.cuda.is_available
        torch.cuda.is_available = lambda: False
        try:
            self._loader.exec_module(module)
        finally:
            torch.cuda.is_available = answer
        vars(module)["lib"] = self._library
