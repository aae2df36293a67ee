"""Puts off what libraries import of torch and a trace never runs: its compiler, and sympy.

`torch._dynamo` and `torch.fx.experimental.symbolic_shapes` cost seconds, and what is asked of them
where nothing is compiled and all sizes are numbers is trivial. A stand-in answers that; whatever
else is asked of it, or of a module below it, loads the real one.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

COMPILER, SYMBOLS = "torch._dynamo", "torch.fx.experimental.symbolic_shapes"
SETTINGS = f"{COMPILER}.config"
"""Checkpointing reads one of the compiler's settings; their module needs nothing of it."""
ALGEBRA = "sympy"
_ALGEBRAIC = ("torch._inductor", "torch.utils._sympy")
"""Names that modules begin with which need all of sympy."""
WRAPPED = f"{COMPILER}._trace_wrapped_higher_order_op"


def put_off() -> None:
    """Stand in for the modules that are not loaded yet."""
    if COMPILER not in sys.modules:
        _stand_in(COMPILER, _compiler_plain())
        wrapped = ModuleType(WRAPPED)
        vars(wrapped)["TransformGetItemToIndex"] = _items_to_indices()
        sys.modules[WRAPPED] = wrapped
        sys.meta_path.insert(0, _Below())
    if SYMBOLS not in sys.modules and ALGEBRA not in sys.modules:
        _stand_in(SYMBOLS, _symbols_plain())
        # torch asks whether numbers are of these classes: none is
        _stand_in(ALGEBRA, {name: type(name, (), {}) for name in ("Basic", "Expr", "Symbol")})


class Later(ModuleType):
    """A module that becomes the real one when it is asked for more than it has."""

    def __getattr__(self, name: str) -> Any:
        """Load the real module and return what it has."""
        if name.startswith("__"):
            raise AttributeError(name)
        if f"{self.__name__}.{name}" == SETTINGS:
            return importlib.import_module(SETTINGS)
        return getattr(load(self.__name__), name)


def load(name: str) -> ModuleType:
    """Return the real module in the place of its stand-in."""
    if isinstance(sys.modules.get(name), Later):
        for one in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
            del sys.modules[one]
        above, _, last = name.rpartition(".")
        if above:
            vars(sys.modules[above]).pop(last, None)
        if name == SYMBOLS:  # it derives from classes of the real one
            load(ALGEBRA)
    return importlib.import_module(name)


class _Below(importlib.abc.MetaPathFinder):
    """Finds modules below a stand-in: first the real one takes its place."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return what finds the module below the real one."""
        del path
        if fullname.startswith(_ALGEBRAIC):
            if isinstance(sys.modules.get(ALGEBRA), Later):
                load(ALGEBRA)
            return None
        above = fullname.rpartition(".")[0]
        if not isinstance(sys.modules.get(above), Later):
            return None
        if fullname == SETTINGS:
            folders = [str(Path(one, "_dynamo")) for one in sys.modules["torch"].__path__]
            return importlib.machinery.PathFinder.find_spec(fullname, folders, target)
        real = load(above)
        if fullname in sys.modules:
            return importlib.machinery.ModuleSpec(fullname, _Loaded(sys.modules[fullname]))
        return importlib.machinery.PathFinder.find_spec(fullname, real.__path__, target)


class _Loaded(importlib.abc.Loader):
    """Gives a module that is loaded already."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module."""
        del spec
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing a second time."""


def _stand_in(name: str, plain: Mapping[str, object]) -> None:
    made = Later(name)
    made.__path__ = []
    vars(made).update(plain)
    sys.modules[name] = made
    above, _, last = name.rpartition(".")
    if above:
        setattr(importlib.import_module(above), last, made)


def as_it_is(function: Any = None, *_more: object, **_settings: object) -> Any:
    """Stand for a decorator of the compiler, with or without settings."""

    def decorate(one: Callable[..., object]) -> Callable[..., object]:
        return one

    return decorate if function is None else function


def _nothing(*_values: object, **_settings: object) -> None:
    """Do nothing."""


def _compiler_plain() -> dict[str, object]:
    return {
        "disable": as_it_is,
        "allow_in_graph": as_it_is,
        "assume_constant_result": as_it_is,
        "graph_break": _nothing,
        "mark_static_address": _nothing,
        "is_compiling": lambda: False,
    }


def _items_to_indices() -> type:
    """Return the mode in which masks are computed under vmap: items are taken by index.

    A number or a tensor of one value in brackets would be read as a Python number, which a tensor
    with a hidden dimension has not.
    """
    import torch

    class ItemsToIndices(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            del types
            if func is torch.Tensor.__getitem__:
                whole, items = args
                items = items if isinstance(items, tuple) else (items,)
                if all(isinstance(one, (torch.Tensor, int)) for one in items):
                    at = [torch.as_tensor(one, device=whole.device) for one in items]
                    return torch.ops.aten.index(whole, at)
            return func(*args, **(kwargs or {}))

    return ItemsToIndices


def _equal(one: Any, other: Any) -> bool:
    """Compare as `sym_eq` does: a list and a tuple are equal where their items are."""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        alike = len(one) == len(other)
        return alike and all(_equal(*both) for both in zip(one, other, strict=True))
    return bool(one == other)


def _same(value: Any, *_more: object, **_settings: object) -> Any:
    return value


def _symbols_plain() -> dict[str, object]:
    """Return what the functions come to where each size is a number."""

    def truth(value: object, *_more: object, **_settings: object) -> bool:
        return bool(value)

    def no(*_values: object) -> bool:
        return False

    return {
        **dict.fromkeys(("guard_or_false", "guard_or_true", "statically_known_true"), truth),
        **dict.fromkeys(("guard_size_oblivious", "expect_true", "guard_bool"), truth),
        **dict.fromkeys(("guarding_hint_or_throw", "optimization_hint", "guard_int"), _same),
        **dict.fromkeys(("is_nested_int", "has_free_symbols", "is_symbolic"), no),
        "has_guarding_hint": lambda _value: True,
        "free_unbacked_symbols": lambda _value: set(),
        "sym_eq": _equal,
        "sym_and": lambda *values: reduce(lambda one, other: one and other, values),
        "sym_or": lambda *values: reduce(lambda one, other: one or other, values),
        "_advise_is_size": _nothing,
        "_advise_is_bounded": _nothing,
    }
