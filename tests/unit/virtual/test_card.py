"""What a virtual card is made of."""

from __future__ import annotations

import pytest

from oomdoctor.errors import InputError, UsageError
from oomdoctor.estimating.cards import cards_of
from oomdoctor.facts.gpus import cards
from oomdoctor.model.job import CardSpec
from oomdoctor.virtual.card import (
    VirtualCard,
    card_like,
    card_named,
    card_of,
    cards_named,
)

MIB = 1 << 20


def test_a_card_has_the_memory_that_it_reports_to_pytorch() -> None:
    card = card_named("NVIDIA A100-SXM4-80GB")

    assert card.total_bytes == 81038 * MIB
    assert (card.capability, card.processors) == ((8, 0), 108)


def test_a_card_without_a_compute_capability_cannot_be_played() -> None:
    other = next(gpu for gpu in cards() if gpu.compute_capability is None)

    assert card_of(other) is None


@pytest.mark.parametrize("name", ["NVIDIA L4", "NVIDIA GeForce RTX 4060", "NVIDIA L40"])
def test_a_card_is_the_one_that_an_estimate_is_made_for(name: str) -> None:
    (spec,) = cards_of([name])

    assert card_named(name) == card_like(spec)


def test_a_card_of_another_maker_is_refused() -> None:
    (spec,) = cards_of(["AMD Instinct MI300X"])

    with pytest.raises(InputError, match="only NVIDIA's cards can be played"):
        card_like(spec)


def test_an_unknown_card_is_an_error_that_says_how_to_name_one() -> None:
    with pytest.raises(InputError, match="no NVIDIA card") as caught:
        card_named("a large one")

    assert "nvidia-smi" in str(caught.value.hint)


def test_a_card_is_taken_from_a_simulated_job() -> None:
    spec = CardSpec(name="some card", capability=(9, 0), processors=132, total_bytes=80 << 30)

    assert card_like(spec) == VirtualCard(
        name="some card", capability=(9, 0), processors=132, total_bytes=80 << 30
    )


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("RTX 4090", ["NVIDIA GeForce RTX 4090"]),
        ("RTX 4090 x2", ["NVIDIA GeForce RTX 4090"] * 2),
        ("RTX 4090x2", ["NVIDIA GeForce RTX 4090"] * 2),
        ("2x RTX 4090", ["NVIDIA GeForce RTX 4090"] * 2),
        ("NVIDIA L4, 2 x Tesla T4", ["NVIDIA L4", "Tesla T4", "Tesla T4"]),
    ],
)
def test_several_cards_are_named_in_one_go(names: str, found: list[str]) -> None:
    assert [one.name for one in cards_named(names)] == found


@pytest.mark.parametrize("names", ["RTX 4090 x17", "0x RTX 4090"])
def test_a_count_of_cards_has_bounds(names: str) -> None:
    with pytest.raises(UsageError):
        cards_named(names)


@pytest.mark.parametrize(
    ("name", "mib", "processors"),
    [
        ("H100 80GB HBM3 MIG 2g.20gb", 20096, 32),
        ("A100-SXM4-40GB MIG 3g.20gb", 20096, 42),
        ("NVIDIA H200 MIG 1g.18gb", 17971, 16),
    ],
)
def test_a_slice_has_a_part_of_its_card(name: str, mib: int, processors: int) -> None:
    card = card_named(name)

    assert (card.total_bytes // MIB, card.processors) == (mib, processors)
    assert "MIG" in card.name


def test_a_slice_that_is_not_written_as_one_is_refused() -> None:
    with pytest.raises(InputError, match="no MIG slice"):
        card_named("H100 80GB HBM3 MIG .20gb")
