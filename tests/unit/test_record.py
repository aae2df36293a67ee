"""Records behave as the frozen dataclasses and named tuples of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from oomdoctor.record import NamedTuple, dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A record of ours."""

    x: int
    y: int = 2
    names: tuple[str, ...] = ()
    notes: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Return the sum."""
        return self.x + self.y


@dataclass(frozen=True, slots=True, kw_only=True)
class Space(Point):
    """A record that adds a field."""

    z: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """A record without fields."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The same with the standard library."""

    x: int
    y: int = 2
    names: tuple[str, ...] = ()
    notes: dict[str, int] = dataclasses.field(default_factory=dict)


class Pair(NamedTuple):
    """A named tuple of ours."""

    left: int
    right: str = "r"

    def swapped(self) -> tuple[str, int]:
        """Return both the other way round."""
        return self.right, self.left


def test_defaults_and_factories_fill_what_is_not_given() -> None:
    one, other = Point(x=1), Point(x=1)

    assert (one.x, one.y, one.names, one.notes, one.total) == (1, 2, (), {}, 3)
    assert one.notes is not other.notes


@pytest.mark.parametrize("arguments", [{}, {"x": 1, "q": 2}, {"y": 1}])
def test_wrong_arguments_are_told_as_the_standard_library_tells_them(arguments: Any) -> None:
    with pytest.raises(TypeError) as expected:
        Model(**arguments)
    with pytest.raises(TypeError) as caught:
        Point(**arguments)

    assert str(expected.value).replace("Model", "Point") == str(caught.value)


def test_arguments_have_names() -> None:
    with pytest.raises(TypeError, match="positional"):
        Point(1)  # type: ignore[misc] - what is tested


def test_a_record_cannot_be_changed() -> None:
    point = Point(x=1)

    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2  # type: ignore[misc] - what is tested
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    assert not hasattr(point, "__dict__")


def test_equality_hash_and_text_go_by_the_values() -> None:
    assert Point(x=1) == Point(x=1)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Model(x=1)
    assert Pair(1) == (1, "r")
    assert repr(Model(x=1)).replace("Model", "Point") == repr(Point(x=1))
    assert hash(Nothing()) == hash(Nothing())
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(x=1))


def test_replace_takes_records_and_dataclasses() -> None:
    assert Point(x=5, y=2) == replace(Point(x=1), x=5)
    assert Point(x=5, y=2) == dataclasses.replace(Point(x=1), x=5)
    assert Model(x=5) == replace(Model(x=1), x=5)
    with pytest.raises(TypeError, match="unexpected"):
        replace(Point(x=1), q=5)


def test_fields_are_those_of_a_dataclass() -> None:
    described = [(one.name, one.type, one.default) for one in dataclasses.fields(Model)]

    assert described == [(one.name, one.type, one.default) for one in dataclasses.fields(Point)]
    assert dataclasses.is_dataclass(Point(x=1))
    assert [one.name for one in dataclasses.fields(Point)] == list(dataclasses.asdict(Point(x=1)))


def test_a_subclass_adds_its_fields() -> None:
    space = Space(x=1, z=9)

    assert (space.x, space.y, space.z, space.total) == (1, 2, 9, 3)
    assert Point(x=1) != space
    assert [one.name for one in dataclasses.fields(Space)] == ["x", "y", "names", "notes", "z"]


def test_copies_and_pickles_are_equal() -> None:
    point = Point(x=1, notes={"a": 1})

    assert point == copy.deepcopy(point)
    assert point == pickle.loads(pickle.dumps(point))  # noqa: S301 - written one line above


def test_another_kind_of_dataclass_is_refused() -> None:
    with pytest.raises(TypeError, match="standard library"):
        dataclass(frozen=False, slots=True, kw_only=True)
    with pytest.raises(TypeError, match="field"):

        @dataclass(frozen=True, slots=True, kw_only=True)
        class _Wrong:
            notes: dict[str, int] = dataclasses.field(default_factory=dict)


def test_a_named_tuple_has_its_methods_and_defaults() -> None:
    pair = Pair(1)

    assert pair == (1, "r")
    assert pair.swapped() == ("r", 1)
    assert pair._replace(left=2) == Pair(2, "r")
    assert (Pair._fields, Pair.__doc__) == (("left", "right"), "A named tuple of ours.")
