"""Cards by the names that tools and people give them."""

from __future__ import annotations

import pytest

from oomdoctor.facts import gpus
from oomdoctor.facts.derive import derive
from tests.unit.facts.stated import GIB, MIB, book


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA GeForce RTX 3090", ["NVIDIA GeForce RTX 3090"]),
        ("GeForce RTX 3090", ["NVIDIA GeForce RTX 3090"]),
        ("RTX3090", ["NVIDIA GeForce RTX 3090"]),
        ("RTX 3090 24GB", ["NVIDIA GeForce RTX 3090"]),
        ("RTX 2080 Ti", ["NVIDIA GeForce RTX 2080 Ti"]),
        ("A100-SXM4-80GB", ["NVIDIA A100-SXM4-80GB"]),
        ("A100-80GB", ["NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM4-80GB"]),
        ("4x A100-SXM4-40GB", ["NVIDIA A100-SXM4-40GB"]),
        ("Tesla T4", ["Tesla T4"]),
        ("A10G", ["NVIDIA A10G"]),
        ("A10", ["NVIDIA A10"]),
        ("NVIDIA RTX 6000 Ada Gene...", ["NVIDIA RTX 6000 Ada Generation"]),
        ("H100 80GB HBM3 MIG 2g.20gb", ["NVIDIA H100 80GB HBM3"]),
        ("TITAN RTX", ["NVIDIA TITAN RTX"]),
        ("80GB", []),
        ("GPU", []),
        ("", []),
    ],
)
def test_a_name_finds_the_cards_it_may_mean(name: str, expected: list[str]) -> None:
    assert [card.name for card in gpus.lookup(name)] == expected


def test_a_cut_name_keeps_all_cards_that_begin_so() -> None:
    names = {card.name for card in gpus.lookup("NVIDIA GeForce RTX 4090 ...")}

    assert {"NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU"} <= names


@pytest.mark.parametrize("name", ["A100", "RTX 4090", "NVIDIA GeForce RTX 3060", "H100"])
def test_a_name_with_several_sizes_fixes_no_memory(name: str) -> None:
    assert gpus.fixed_total(gpus.lookup(name)) is None


def test_a_name_with_one_size_fixes_it_within_driver_differences() -> None:
    total = gpus.fixed_total(gpus.lookup("RTX 3090"))

    assert total is not None
    assert abs(total.bytes - 24268 * MIB) <= total.slack_bytes


@pytest.mark.parametrize(("size", "expected"), [(23.52, True), (47.37, True), (79.15, False)])
def test_a_printed_capacity_fits_any_of_the_known_sizes(size: float, expected: bool) -> None:
    found = gpus.lookup("NVIDIA GeForce RTX 4090")

    assert gpus.fits_capacity(found, int(size * GIB)) is expected


def test_the_name_gives_capability_and_architecture() -> None:
    made = derive(book({"gpu.name": "A100"}))

    assert made.value("gpu.compute_capability") == "8.0"
    assert made.value("gpu.architecture") == "Ampere"
    assert made.get("gpu.total") is None


def test_what_candidates_do_not_share_is_unknown() -> None:
    assert derive(book({"gpu.name": "RTX 6000"})).get("gpu.compute_capability") is None


def test_a_mig_slice_is_not_the_whole_card() -> None:
    made = derive(book({"gpu.name": "NVIDIA H100 80GB HBM3 MIG 2g.20gb"}))

    assert made.value("gpu.mig") is True
    assert made.value("gpu.mig_slice") == 20 * GIB
    assert made.get("gpu.total") is None


def test_every_card_is_found_by_its_own_name() -> None:
    lost = [card.name for card in gpus.cards() if card not in gpus.lookup(card.name)]

    assert lost == []


def test_a_laptop_s_card_is_meant_where_it_is_said() -> None:
    assert [card.name for card in gpus.lookup("3080 ti")] == ["NVIDIA GeForce RTX 3080 Ti"]
    assert [card.name for card in gpus.lookup("3080 ti laptop")] == [
        "NVIDIA GeForce RTX 3080 Ti Laptop GPU"
    ]
