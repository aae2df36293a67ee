"""What processes hold of a card, of cards of several kinds, and with strangers on them."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

import pytest

from oomdoctor.virtual.usage import read_usage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Load = Callable[..., ctypes.CDLL]

MIB = 1 << 20
SIZE = ctypes.c_size_t


def allocate(core: ctypes.CDLL, size: int, card: int = 0) -> int | None:
    address = SIZE()
    return None if core.vc_allocate(card, SIZE(size), ctypes.byref(address)) else address.value


def in_a_child(work: Callable[[], int]) -> int:
    """Return what a forked process makes of it."""
    child = os.fork()
    if not child:
        os._exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_what_one_process_takes_the_others_miss(core: Load, tmp_path: Path) -> None:
    card = core(TOTAL_BYTES=10 * MIB, USAGE=tmp_path / "usage")
    assert allocate(card, 6 * MIB) is not None

    assert in_a_child(lambda: allocate(card, 6 * MIB) is None) == 1
    assert in_a_child(lambda: allocate(card, 4 * MIB) is not None) == 1


def test_a_process_that_died_holds_nothing(core: Load, tmp_path: Path) -> None:
    card = core(TOTAL_BYTES=10 * MIB, USAGE=tmp_path / "usage")

    assert in_a_child(lambda: allocate(card, 8 * MIB) is not None) == 1
    assert allocate(card, 10 * MIB) is not None


def test_the_use_of_a_card_is_seen_from_outside(core: Load, tmp_path: Path) -> None:
    cards = core(TOTAL_BYTES=10 * MIB, CONTEXT_BYTES=2 * MIB, COUNT=2, USAGE=tmp_path / "usage")
    address = allocate(cards, 6 * MIB, card=1)
    allocate(cards, 6 * MIB, card=1)
    cards.vc_release(SIZE(address or 0))

    none, used = read_usage(tmp_path / "usage", 2)

    assert (none.peak_bytes, none.refused, none.held_bytes) == (0, 0, {})
    assert (used.peak_bytes, used.refused) == (8 * MIB, 1)
    assert used.held_bytes == {os.getpid(): 2 * MIB}


def test_a_process_that_was_killed_holds_nothing_as_seen_from_outside(
    core: Load, tmp_path: Path
) -> None:
    card = core(TOTAL_BYTES=10 * MIB, USAGE=tmp_path / "usage")
    in_a_child(lambda: allocate(card, 8 * MIB) is not None)

    (one,) = read_usage(tmp_path / "usage", 1)

    assert (one.peak_bytes, one.held_bytes) == (8 * MIB, {})


def test_nothing_is_used_where_nobody_ran(tmp_path: Path) -> None:
    (one,) = read_usage(tmp_path / "none", 1)

    assert (one.peak_bytes, one.refused, one.held_bytes) == (0, 0, {})


def test_a_context_is_there_when_a_card_is_first_used(core: Load) -> None:
    cards = core(TOTAL_BYTES=10 * MIB, CONTEXT_BYTES=4 * MIB, COUNT=2)

    assert cards.vc_used(0) == 0
    allocate(cards, 2 * MIB)

    assert (cards.vc_used(0), cards.vc_used(1)) == (6 * MIB, 0)


def test_strangers_hold_their_part_from_the_start(core: Load) -> None:
    card = core(TOTAL_BYTES=10 * MIB, OTHERS_BYTES=7 * MIB)

    assert card.vc_used(0) == 7 * MIB
    assert allocate(card, 4 * MIB) is None
    assert allocate(card, 2 * MIB) is not None


def test_the_driver_gives_nothing_from_the_allocation_on_that_is_asked_for(core: Load) -> None:
    card = core(TOTAL_BYTES=100 * MIB, FAIL_AT=3)

    got = [allocate(card, MIB) is not None for _ in range(5)]

    assert got == [True, True, False, False, False]


def test_cards_of_several_kinds(core: Load) -> None:
    cards = core(
        NAME="large;small",
        TOTAL_BYTES=f"{20 * MIB};{4 * MIB}",
        CAPABILITY="9.0;7.5",
        SM_COUNT="132;40",
        COUNT=3,
    )

    assert [allocate(cards, 10 * MIB, card=one) is not None for one in range(3)] == [
        True,
        False,
        False,
    ]
    assert [cards.vc_attribute_of(one, 16) for one in range(3)] == [132, 40, 40]
    assert [cards.vc_attribute_of(one, 75) for one in range(3)] == [9, 7, 7]


@pytest.mark.parametrize(
    ("visible", "shown"),
    [("1", [1]), ("2,0", [2, 0]), ("0,7,1", [0]), ("", []), ("GPU-02000000", [1]), ("-1", [])],
)
def test_a_program_sees_the_cards_that_are_left_to_it(
    core: Load, monkeypatch: pytest.MonkeyPatch, visible: str, shown: list[int]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    cards = core(COUNT=3, SM_COUNT="10;11;12")

    seen = [one for one in range(3) if cards.vc_choose_card(one) == 0]
    assert [cards.vc_attribute_of(one, 16) - 10 for one in seen] == shown
    count = ctypes.c_uint()
    cards.nvmlDeviceGetCount_v2(ctypes.byref(count))
    assert count.value == 3, "nvidia-smi shows all"
