"""The balance sheet: shares, overshoot, contradictions."""

from __future__ import annotations

from dataclasses import replace

from oomdoctor.model.enums import Origin
from oomdoctor.reason.ledger import draw_up, overshoot_of
from tests.unit.reason.builders import GIB, book, fact

MIB = 1 << 20


def owners(**values: int) -> dict[str, int]:
    ledger = draw_up(book(**values))
    assert ledger is not None
    return {entry.owner: entry.bytes for entry in ledger.entries}


def test_nothing_stated_gives_no_ledger() -> None:
    assert draw_up(book(oom__seen=True)) is None


def test_private_pools_are_split_from_the_allocated_bytes() -> None:
    shares = owners(torch__allocated=10 * GIB, torch__private_pools=3 * GIB)

    assert shares == {"allocated": 7 * GIB, "private_pools": 3 * GIB}


def test_all_shares_of_a_card_are_listed_with_what_stays_unexplained() -> None:
    shares = owners(
        oom__capacity=24 * GIB,
        oom__free=GIB,
        torch__allocated=10 * GIB,
        torch__reserved_unallocated=2 * GIB,
        gpu__foreign=8 * GIB,
        balance__context=GIB,
    )

    assert shares == {
        "other_processes": 8 * GIB,
        "outside_allocator": GIB,
        "allocated": 10 * GIB,
        "reserved_unallocated": 2 * GIB,
        "free": GIB,
        "unexplained": 2 * GIB,
    }


def test_what_lies_outside_is_not_split_where_nobody_knows_the_owner() -> None:
    shares = owners(oom__capacity=24 * GIB, balance__outside=9 * GIB)

    assert shares == {"outside_allocator_or_other_processes": 9 * GIB}


def test_the_context_is_what_foreign_bytes_leave_of_the_outside() -> None:
    shares = owners(balance__outside=9 * GIB, gpu__foreign=8 * GIB)

    assert shares == {"other_processes": 8 * GIB, "outside_allocator": GIB}


def test_shares_beyond_the_capacity_are_a_contradiction() -> None:
    ledger = draw_up(book(oom__capacity=10 * GIB, oom__free=4 * GIB, torch__allocated=8 * GIB))

    assert ledger is not None
    assert ledger.contradiction_bytes == 2 * GIB
    assert ledger.unexplained_bytes is None


def test_rounding_is_no_contradiction() -> None:
    rounded = fact("torch.allocated", 8 * GIB, slack=5 * MIB)
    ledger = draw_up(book(oom__capacity=10 * GIB, oom__free=2 * GIB + 4 * MIB).add([rounded]))

    assert ledger is not None
    assert ledger.contradiction_bytes == 0


def test_the_overshoot_is_requested_minus_free() -> None:
    assert overshoot_of(book(oom__requested=3 * GIB, oom__free=GIB)) == 2 * GIB


def test_under_a_cap_the_overshoot_counts_from_what_the_cap_left() -> None:
    capped = book(
        oom__requested=3 * GIB, oom__free=20 * GIB, oom__allowed=8 * GIB, torch__reserved=7 * GIB
    )

    assert overshoot_of(capped) == 2 * GIB


def test_a_request_below_the_free_bytes_overshoots_nothing() -> None:
    assert overshoot_of(book(oom__requested=GIB, oom__free=3 * GIB)) is None


def test_an_absurd_request_has_no_overshoot() -> None:
    absurd = book(oom__requested=1 << 60, oom__free=GIB, oom__absurd_size=True)

    assert overshoot_of(absurd) is None


def test_derived_entries_say_so() -> None:
    derived = replace(fact("balance.outside", GIB), origin=Origin.DERIVED, source="capacity - free")
    ledger = draw_up(book(oom__capacity=10 * GIB).add([derived]))

    assert ledger is not None
    assert (ledger.entries[0].origin, ledger.entries[0].source) == (
        Origin.DERIVED,
        "capacity - free",
    )
