"""How many multiprocessors a card has, by its name or its generation."""

from __future__ import annotations

import pytest

from oomdoctor.facts.processors import processors_of


@pytest.mark.parametrize(
    ("name", "processors"),
    [
        ("NVIDIA GeForce RTX 3090", 82),
        ("NVIDIA GeForce RTX 3090 Ti", 84),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 76),
        ("NVIDIA H100 80GB HBM3", 132),
        ("NVIDIA H100 PCIe", 114),
        ("NVIDIA A30", 56),
        ("NVIDIA L4", 58),
        ("NVIDIA L40S", 142),
        ("Tesla V100-SXM2-16GB", 80),
    ],
)
def test_the_longest_name_decides(name: str, processors: int) -> None:
    assert processors_of(name, (8, 0)) == processors


@pytest.mark.parametrize(
    ("capability", "processors"), [((8, 9), 142), ((9, 0), 132), ((10, 3), 148), ((3, 5), 72)]
)
def test_a_card_that_nobody_listed_has_those_of_its_generation(
    capability: tuple[int, int], processors: int
) -> None:
    assert processors_of("NVIDIA Example 9000", capability) == processors
