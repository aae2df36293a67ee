"""Frozen dataclasses that are defined quickly: their methods are shared, or written when needed.

The standard library writes and compiles six methods per frozen dataclass, some 0.8 ms each time;
with forty of them that was a third of a start. Here `__init__` is written when the first object is
made, and the other methods are shared; `dataclasses.fields`, `replace` and `is_dataclass` work as
ever. A type checker sees the decorator of the standard library.
"""

from __future__ import annotations

import dataclasses
from dataclasses import FrozenInstanceError
from dataclasses import fields as fields_of
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - exported: what checkers see
else:

    def dataclass(
        *, frozen: bool, slots: bool, kw_only: bool
    ) -> Callable[[type[object]], type[object]]:
        """Make a class a dataclass; all three must be true, and stand there to be read."""
        if not (frozen and slots and kw_only):
            message = "for any other dataclass, use the standard library's decorator"
            raise TypeError(message)
        return _record


T = TypeVar("T")
Record: TypeAlias = Any
"""An object of any class that was made here."""


def _record(cls: type[T]) -> type[T]:
    make = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)
    made = make(cls)
    methods = {"__init__": _first_init(made), **_comparing(made), **_SHARED}
    for name, method in methods.items():
        if name not in vars(cls):
            setattr(made, name, method)
    return made


def _first_init(cls: type[Any]) -> Callable[..., None]:
    """Return an `__init__` that puts the real one in its place when it is called first."""

    def __init__(self: object, **values: object) -> None:  # noqa: N807 - it becomes that method
        cls.__init__ = _init_of(cls)
        cls.__init__(self, **values)

    return __init__


def _init_of(cls: type[Any]) -> Callable[..., None]:
    """Write `__init__`: it takes the fields by keyword and sets each past the frozen `setattr`."""
    missing = dataclasses.MISSING
    known: dict[str, Any] = {"_set": object.__setattr__}
    parameters, lines = [], []
    for field in fields_of(cls):
        name = field.name
        value = name
        if field.default is not missing:
            known[f"_{name}"] = field.default
            parameters.append(f"{name}=_{name}")
        elif field.default_factory is not missing:
            known[f"_{name}"] = field.default_factory
            parameters.append(f"{name}=_{name}")
            value = f"_{name}() if {name} is _{name} else {name}"
        else:
            parameters.append(name)
        lines.append(f" _set(self, {name!r}, {value})")
    listed = ", ".join(["self", "*", *parameters] if parameters else ["self"])
    source = "\n".join([f"def __init__({listed}):", *lines, " return"])
    exec(source, known)  # noqa: S102 - the names are those of our own fields
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _comparing(cls: type[Any]) -> dict[str, Callable[..., object]]:
    """Return the methods that look at all values."""
    names = [field.name for field in fields_of(cls)]
    # one name more, so that it is always a tuple
    values = attrgetter(*names, names[0]) if names else _nothing

    def __eq__(self: object, other: object) -> bool:  # noqa: N807 - it becomes that method
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self is other or bool(values(self) == values(other))

    def __hash__(self: object) -> int:  # noqa: N807 - it becomes that method
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _nothing(self: object) -> tuple[object, ...]:  # noqa: ARG001 - like attrgetter's
    return ()


def _getstate(self: Record) -> tuple[object, ...]:
    return tuple(getattr(self, name) for name in self.__dataclass_fields__)


def _repr(self: Record) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _setattr(self: Record, name: str, value: object) -> None:  # noqa: ARG001 - the method's signature
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Record, name: str) -> None:  # noqa: ARG001 - the method's signature
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _setstate(self: Record, state: tuple[object, ...]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        object.__setattr__(self, name, value)


_SHARED: dict[str, Callable[..., object]] = {
    "__repr__": _repr,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}
