"""The memory of a virtual card: what is used, where it lies, what is known of it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Load = Callable[..., ctypes.CDLL]

MIB = 1 << 20
SIZE = ctypes.c_size_t


def allocate(core: ctypes.CDLL, size: int, card: int = 0) -> int | None:
    address = SIZE()
    return None if core.vc_allocate(card, SIZE(size), ctypes.byref(address)) else address.value


def read(core: ctypes.CDLL, address: int, size: int) -> bytes | None:
    buffer = ctypes.create_string_buffer(size)
    return buffer.raw if core.vc_known(SIZE(address), buffer, SIZE(size)) else None


def test_memory_is_counted_in_pages_of_2_mib(core: Load) -> None:
    card = core(TOTAL_BYTES=100 * MIB)

    first = allocate(card, 1)
    second = allocate(card, 3 * MIB)

    assert first is not None
    assert second == first + 2 * MIB
    assert card.vc_used(0) == 6 * MIB


def test_what_does_not_fit_fails_and_changes_nothing(core: Load) -> None:
    card = core(TOTAL_BYTES=10 * MIB, CONTEXT_BYTES=4 * MIB)

    assert allocate(card, 8 * MIB) is None
    assert card.vc_used(0) == 4 * MIB
    assert allocate(card, 6 * MIB) is not None


def test_freed_memory_is_there_again_under_a_new_address(core: Load) -> None:
    card = core(TOTAL_BYTES=10 * MIB)
    first = allocate(card, 10 * MIB)
    assert first is not None

    assert card.vc_release(SIZE(first)) == 0
    assert card.vc_release(SIZE(first)) == 1, "it is freed already"
    assert allocate(card, 10 * MIB) == first + 10 * MIB


def test_cards_have_memory_of_their_own(core: Load) -> None:
    cards = core(TOTAL_BYTES=10 * MIB, COUNT=2)

    address = allocate(cards, 10 * MIB, card=1)

    assert address is not None
    assert cards.vc_card_of(ctypes.c_void_p(address)) == 1
    assert cards.vc_card_of(ctypes.c_void_p(4096)) == -1
    assert (cards.vc_used(0), cards.vc_used(1)) == (0, 10 * MIB)


def test_the_block_of_an_address_is_found(core: Load) -> None:
    card = core(TOTAL_BYTES=100 * MIB)
    addresses = [allocate(card, 4 * MIB) or 0 for _ in range(5)]
    card.vc_release(SIZE(addresses[2]))
    start = SIZE()

    inside = card.vc_block_of(SIZE(addresses[3] + 5), ctypes.byref(start))

    assert (inside, start.value) == (4 * MIB, addresses[3])
    assert card.vc_block_of(SIZE(addresses[2] + 5), None) == 0


def test_pages_of_expandable_segments_count_and_addresses_do_not(core: Load) -> None:
    card = core(TOTAL_BYTES=10 * MIB)
    handle = ctypes.c_ulonglong()

    card.vc_reserve_addresses(0, SIZE(1 << 40))
    assert card.vc_used(0) == 0
    assert card.vc_take_pages(0, SIZE(6 * MIB), ctypes.byref(handle)) == 0
    assert card.vc_take_pages(0, SIZE(6 * MIB), ctypes.byref(ctypes.c_ulonglong())) == 1
    card.vc_give_pages(handle)
    assert card.vc_used(0) == 0


def test_only_as_many_cards_as_the_program_may_see(
    core: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")

    cards = core(COUNT=4)

    assert cards.vc_choose_card(0) == 0
    assert cards.vc_choose_card(1) == 1


def test_what_the_host_wrote_is_read_again(core: Load) -> None:
    card = core()
    address = allocate(card, MIB) or 0

    card.vc_written(SIZE(address + 250), b"0123456789", SIZE(10))

    assert read(card, address + 252, 4) == b"2345"
    assert read(card, address + 252, 20) is None


def test_values_follow_a_copy_and_end_with_an_unknown_one(core: Load) -> None:
    card = core()
    one, two = allocate(card, MIB) or 0, allocate(card, MIB) or 0
    card.vc_filled(SIZE(one), 7, SIZE(300))

    card.vc_copy(ctypes.c_void_p(two), ctypes.c_void_p(one), SIZE(300))
    copied = read(card, two, 300)
    card.vc_copy(ctypes.c_void_p(two), ctypes.c_void_p(one + 200), SIZE(300))

    assert copied == b"\7" * 300
    assert read(card, two, 100) == b"\7" * 100
    assert read(card, two + 100, 1) is None


@pytest.mark.parametrize("size", [2 * MIB, 40 * MIB])
def test_a_large_write_makes_unknown_what_it_covers(core: Load, size: int) -> None:
    card = core()
    address = allocate(card, 64 * MIB) or 0
    card.vc_written(SIZE(address + 512), b"old", SIZE(3))
    card.vc_written(SIZE(address + size), b"after", SIZE(5))

    card.vc_written(SIZE(address), ctypes.create_string_buffer(size), SIZE(size))

    assert read(card, address + 512, 3) is None
    assert read(card, address + size, 5) == b"after"


def test_reads_of_unknown_values_are_zero_and_counted(core: Load, tmp_path: Path) -> None:
    card = core(LOG=tmp_path / "log")
    address = allocate(card, MIB) or 0
    buffer = ctypes.create_string_buffer(b"full", 4)

    for _ in range(3):
        card.vc_copy(buffer, ctypes.c_void_p(address), SIZE(4))

    assert buffer.raw == bytes(4)
    counts = [line.split()[2] for line in (tmp_path / "log").read_text().splitlines()]
    assert counts == ["1", "2"], "written when it has doubled"


def test_a_call_is_reported_once(core: Load, tmp_path: Path) -> None:
    card = core(LOG=tmp_path / "log")

    for name in (b"cudaOne", b"cudaTwo", b"cudaOne"):
        card.vc_report(b"refused", name)

    assert (tmp_path / "log").read_text() == "refused cudaOne\nrefused cudaTwo\n"


def test_host_memory_is_known_by_its_kind(core: Load) -> None:
    card = core()
    pinned, managed = (card.vc_host_allocate(SIZE(100), kind) for kind in (1, 3))

    kinds = [card.vc_host_kind_of(ctypes.c_void_p(at + 50)) for at in (pinned, managed)]

    assert kinds == [1, 3]
    assert card.vc_host_release(ctypes.c_void_p(pinned)) == 0
    assert card.vc_host_kind_of(ctypes.c_void_p(pinned)) == 0


@pytest.mark.parametrize(
    ("capability", "shared_kib", "threads", "binary"),
    [("7.5", 64, 1024, 75), ("8.0", 163, 2048, 80), ("8.9", 99, 1536, 86), ("9.0", 227, 2048, 90)],
)
def test_limits_follow_the_compute_capability(
    core: Load, capability: str, shared_kib: int, threads: int, binary: int
) -> None:
    card = core(CAPABILITY=capability)

    assert card.vc_attribute(97) == shared_kib << 10
    assert card.vc_attribute(39) == threads
    assert card.vc_binary_version() == binary


def test_the_monitor_says_what_is_used(core: Load) -> None:
    card = core(TOTAL_BYTES=100 * MIB, NAME="a card")
    allocate(card, 6 * MIB)
    memory = (ctypes.c_ulonglong * 3)()
    name = ctypes.create_string_buffer(64)

    card.nvmlDeviceGetMemoryInfo(ctypes.c_void_p(1), memory)
    card.nvmlDeviceGetName(ctypes.c_void_p(1), name, 64)

    assert list(memory) == [100 * MIB, 94 * MIB, 6 * MIB]
    assert name.value == b"a card"
