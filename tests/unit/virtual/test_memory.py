"""What is noted of a tensor costs little, whatever its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.virtual.inside.memory import Card

if TYPE_CHECKING:
    from collections.abc import Iterator


class View:
    """A tensor of bfloat16 as far as it is asked for its place: rows with gaps between them."""

    dtype = type("BFloat16", (), {"is_floating_point": True, "is_complex": False})()

    def __init__(self, shape: tuple[int, ...], stride: tuple[int, ...], address: int = 0) -> None:
        """Lie at an address."""
        self.shape = shape
        self.steps = stride
        self.address = address

    def stride(self) -> tuple[int, ...]:
        return self.steps

    def dim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    def element_size(self) -> int:
        return 2

    def data_ptr(self) -> int:
        return self.address

    def __len__(self) -> int:
        """Return the size of the first dimension."""
        return self.shape[0]

    def __iter__(self) -> Iterator[View]:
        """Yield the parts along the first dimension."""
        for at in range(len(self)):
            yield View(self.shape[1:], self.steps[1:], self.address + 2 * at * self.steps[0])


@pytest.fixture
def forgotten() -> list[tuple[int, int]]:
    return []


@pytest.fixture
def card(forgotten: list[tuple[int, int]]) -> Card:
    card: Any = Card.__new__(Card)
    card._unknown = lambda address, size: forgotten.append((address, size))
    return card  # type: ignore[no-any-return] - a card whose driver is a list


def test_of_few_rows_each_is_forgotten_and_what_lies_between_is_not(
    card: Card, forgotten: list[tuple[int, int]]
) -> None:
    card.write(View((2, 3), (8, 1)), None)

    assert forgotten == [(0, 6), (16, 6)]


def test_many_rows_are_forgotten_at_once_whatever_the_dimension_they_lie_in(
    card: Card, forgotten: list[tuple[int, int]]
) -> None:
    card.write(View((4, 32, 1000, 2), (128_000, 4, 128, 1)), None)

    assert forgotten == [(0, (3 * 128_000 + 31 * 4 + 999 * 128 + 1 + 1) * 2)]
