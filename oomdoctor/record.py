"""Frozen dataclasses and named tuples that are defined quickly, as far as a start needs them.

The standard library writes and compiles six methods per frozen dataclass, some 0.8 ms each time;
with forty of them that was a third of a start. Here `__init__` is written when the first object is
made, the fields are described when `dataclasses.fields` asks for them, and the other methods are
shared. A type checker sees the standard library's `dataclass`, `field`, `replace`, `NamedTuple`.
"""

from __future__ import annotations

from collections import namedtuple
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - exported: what checkers see
    from dataclasses import field as field  # noqa: PLC0414 - same
    from dataclasses import replace as replace  # noqa: PLC0414 - same
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - same

Record: TypeAlias = Any
"""An object of any class that was made here, or the class."""


class _Factory:
    """The default of a field that is made anew for every object."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make


class _Fields:
    """`__dataclass_fields__`, which is there once somebody looks at it."""

    def __init__(self, plain: Record) -> None:
        self._plain = plain

    def __get__(self, record: Record, owner: Record) -> Record:
        import dataclasses

        for name, value in list(vars(self._plain).items()):
            if isinstance(value, _Factory):
                setattr(self._plain, name, dataclasses.field(default_factory=value.make))
        make = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=True)
        made: Record = make(self._plain)
        owner.__dataclass_params__ = made.__dataclass_params__
        owner.__dataclass_fields__ = made.__dataclass_fields__
        return owner.__dataclass_fields__


def _record(cls: Record) -> Record:
    """Return the class with slots for its fields, and with the methods of a frozen dataclass."""
    own = cls.__annotations__
    body = {name: value for name, value in vars(cls).items() if name not in _UNWANTED}
    defaults = {name: body.pop(name) for name in own if name in body}
    if any(type(value).__name__ == "Field" for value in defaults.values()):
        raise TypeError(f"{cls.__qualname__}: take `field` from oomdoctor.record")
    inherited = getattr(cls, "_field_names", ())
    names = (*inherited, *(name for name in own if name not in inherited))
    all_defaults = {**getattr(cls, "_field_defaults", {}), **defaults}
    shared = {"__init__": _first_init, **_comparing(names), **_SHARED}
    return type(cls)(
        cls.__name__,
        cls.__bases__,
        {
            **{name: method for name, method in shared.items() if name not in body},
            **body,
            "__slots__": tuple(own),
            "__qualname__": cls.__qualname__,
            "__dataclass_fields__": _Fields(cls),
            "_field_names": names,
            "_field_defaults": all_defaults,
        },
    )


_UNWANTED = frozenset({"__dict__", "__weakref__"})


def _first_init(self: Record, **values: object) -> None:
    """Put the real `__init__` in the place of this one, when it is called first."""
    cls: Record = next(one for one in type(self).__mro__ if "_field_names" in vars(one))
    cls.__init__ = _init_of(cls)
    cls.__init__(self, **values)


def _init_of(cls: Record) -> Callable[..., None]:
    """Write `__init__`: it takes the fields by keyword and sets each past the frozen `setattr`."""
    known: dict[str, Any] = {"_set": object.__setattr__}
    parameters, lines = [], []
    for name in cls._field_names:
        value = name
        if name in cls._field_defaults:
            default = cls._field_defaults[name]
            known[f"_{name}"] = default.make if isinstance(default, _Factory) else default
            parameters.append(f"{name}=_{name}")
            if isinstance(default, _Factory):
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


def _comparing(names: tuple[str, ...]) -> dict[str, Callable[..., object]]:
    """Return the methods that look at all values."""
    # one name more, so that it is always a tuple
    values: Callable[[object], object] = attrgetter(*names, names[0]) if names else lambda _: ()

    def __eq__(self: object, other: object) -> bool:  # noqa: N807 - it becomes that method
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self is other or bool(values(self) == values(other))

    def __hash__(self: object) -> int:  # noqa: N807 - it becomes that method
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _repr(self: Record) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name in self._field_names)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _setattr(self: Record, name: str, value: object) -> None:  # noqa: ARG001 - the method's signature
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Record, name: str) -> None:  # noqa: ARG001 - the method's signature
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Record) -> tuple[object, ...]:
    return tuple(getattr(self, name) for name in self._field_names)


def _setstate(self: Record, state: tuple[object, ...]) -> None:
    for name, value in zip(self._field_names, state, strict=True):
        object.__setattr__(self, name, value)


_SHARED: dict[str, Callable[..., object]] = {
    "__repr__": _repr,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}


_tuple_class: Callable[..., Record] = namedtuple  # noqa: PYI024 - what typing's makes one of


class _TupleMaker(type):
    """Makes a named tuple of a class body, without a look at the types that it names."""

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Record:
        if not bases:
            return super().__new__(mcs, name, bases, body)
        names = tuple(body.get("__annotations__", ()))
        defaults = [body[one] for one in names if one in body]
        module = body["__module__"]
        made = _tuple_class(name, names, defaults=defaults, module=module)
        for key, value in body.items():
            if key not in names and key not in ("__module__", "__qualname__"):
                setattr(made, key, value)
        return made


if not TYPE_CHECKING:
    NamedTuple = type.__new__(_TupleMaker, "NamedTuple", (), {})

    def dataclass(
        *, frozen: bool, slots: bool, kw_only: bool
    ) -> Callable[[type[object]], type[object]]:
        """Make a class a dataclass; all three must be true, and stand there to be read."""
        if not (frozen and slots and kw_only):
            message = "for any other dataclass, use the standard library's decorator"
            raise TypeError(message)
        return _record

    def field(*, default_factory: Callable[[], object]) -> _Factory:
        """Say how a field's default is made."""
        return _Factory(default_factory)

    def replace(record: Record, /, **changes: object) -> Record:
        """Return a copy with some fields changed."""
        names = getattr(record, "_field_names", None)
        if names is None:
            import dataclasses

            return dataclasses.replace(record, **changes)
        return type(record)(**{name: getattr(record, name) for name in names} | changes)
