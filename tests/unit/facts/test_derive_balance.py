"""The balance of the card out of the figures of one message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.facts.derive import derive
from oomdoctor.facts.segments import segment_bytes
from tests.unit.facts.stated import GIB, MIB, book

MESSAGE = {
    "oom.seen": True,
    "oom.requested": "1.16 GiB",
    "oom.capacity": "23.69 GiB",
    "oom.free": "412.00 MiB",
    "oom.this_process": "22.90 GiB",
    "torch.allocated": "21.30 GiB",
    "torch.reserved_unallocated": "900.00 MiB",
}


def test_reserved_is_allocated_plus_unallocated() -> None:
    made = derive(book(MESSAGE)).facts["torch.reserved"]

    assert made.value == 22870700851 + 943718400
    assert made.slack == 5368709 + 5243


def test_private_pools_are_part_of_the_printed_allocated_bytes() -> None:
    with_pools = derive(book({**MESSAGE, "torch.private_pools": "5.00 GiB"}))

    assert with_pools.value("torch.reserved") == derive(book(MESSAGE)).value("torch.reserved")


def test_the_cache_follows_from_reserved_in_old_messages() -> None:
    old = book({"torch.allocated": "9.00 GiB", "torch.reserved": "10.50 GiB"})

    assert derive(old).value("torch.reserved_unallocated") == int(1.5 * GIB)


def test_this_process_clause_gives_context_and_foreign_bytes() -> None:
    made = derive(book(MESSAGE))

    assert made.value("balance.context") == 24588687770 - (22870700851 + 943718400)
    assert made.value("gpu.foreign") == 25436943811 - 412 * MIB - 24588687770
    assert made.value("balance.foreign_low") == 0


def test_shortfall_is_requested_minus_free() -> None:
    assert derive(book(MESSAGE)).value("oom.shortfall") == 1245540516 - 412 * MIB


def test_shortfall_under_a_cap_counts_what_the_cap_left() -> None:
    capped = {**MESSAGE, "oom.free": "20.00 GiB", "oom.allowed": "23.00 GiB"}

    made = derive(book(capped))

    left = 23 * GIB - (22870700851 + 943718400)
    assert made.value("oom.shortfall") == 1245540516 - left


def test_shortfall_of_mps_counts_its_other_allocations() -> None:
    mps = book(
        {
            "oom.requested": "2.00 GiB",
            "oom.allowed": "18.00 GiB",
            "torch.allocated": "12.00 GiB",
            "oom.other_allocations": "5.00 GiB",
        }
    )

    assert derive(mps).value("oom.shortfall") == GIB


@pytest.mark.parametrize(
    ("requested", "free", "expected"),
    [
        ("1.00 GiB", "8.00 GiB", True),
        ("1.00 GiB", "0.50 GiB", False),
        ("4.44 GiB", "4.44 GiB", None),
        ("1.00 GiB", "1.20 GiB", None),
        ("20.00 MiB", "40.00 MiB", None),
        ("60.00 MiB", "110.00 MiB", None),
        ("60.00 MiB", "300.00 MiB", True),
        ("20.00 MiB", "3.00 GiB", True),
        ("512.00 KiB", "20.00 MiB", None),
    ],
)
def test_a_request_fits_free_memory_only_beyond_segment_and_margin(
    requested: str, free: str, expected: bool | None
) -> None:
    made = derive(book({"oom.requested": requested, "oom.free": free}))

    assert made.value("oom.request_fits_free") is expected


def test_an_absurd_request_is_neither_short_nor_fitting() -> None:
    made = derive(
        book(
            {"oom.requested": "17179869183.95 GiB", "oom.free": "1.00 GiB", "oom.absurd_size": True}
        )
    )

    assert made.get("oom.shortfall") is None
    assert made.get("oom.request_fits_free") is None
    assert made.get("balance.request_share") is None


LISTED = {
    "oom.capacity": "23.57 GiB",
    "oom.free": "605.88 MiB",
    "oom.listed_processes": 1,
    "torch.allocated": "20.21 GiB",
    "torch.reserved_unallocated": "185.98 MiB",
}


def test_a_listed_process_is_self_where_both_do_not_fit_beside_each_other() -> None:
    made = derive(book({**LISTED, "oom.largest_process": "22.97 GiB"}))

    assert made.value("balance.listed_is_self") is True


def test_a_listed_process_smaller_than_what_is_reserved_is_another_one() -> None:
    made = derive(book({**LISTED, "oom.largest_process": "2.10 GiB"}))

    assert made.value("balance.listed_is_self") is False
    assert made.get("balance.context") is None


def test_a_listed_process_of_reserved_plus_a_context_is_self() -> None:
    small = {
        "oom.capacity": "79.15 GiB",
        "oom.free": "1.00 GiB",
        "oom.listed_processes": 2,
        "torch.allocated": "20.00 GiB",
        "torch.reserved_unallocated": "1.00 GiB",
        "oom.largest_process": "21.60 GiB",
        "oom.listed_processes_bytes": "40.00 GiB",
    }

    made = derive(book(small))

    assert made.value("balance.listed_is_self") is True
    assert made.value("gpu.foreign") == round(79.15 * GIB) - GIB - round(21.6 * GIB)


def test_a_listed_process_that_may_be_either_is_left_open() -> None:
    odd = {
        "oom.capacity": "79.15 GiB",
        "oom.free": "1.00 GiB",
        "oom.listed_processes": 1,
        "torch.allocated": "20.00 GiB",
        "torch.reserved_unallocated": "1.00 GiB",
        "oom.largest_process": "40.00 GiB",
    }

    assert derive(book(odd)).get("balance.listed_is_self") is None


def test_without_process_clauses_only_a_lower_bound_of_foreign_bytes_remains() -> None:
    bare = {
        "oom.capacity": "24.00 GiB",
        "oom.free": "1.00 GiB",
        "torch.allocated": "9.00 GiB",
        "torch.reserved_unallocated": "1.00 GiB",
    }

    made = derive(book(bare))

    assert made.value("balance.outside") == 13 * GIB
    assert made.get("gpu.foreign") is None
    assert made.value("balance.foreign_low") == int(11.5 * GIB)


def test_a_card_that_is_free_to_the_last_byte_is_one_of_which_windows_keeps_a_part() -> None:
    laptop = {
        "oom.capacity": "4.00 GiB",
        "oom.free": "0 bytes",
        "torch.allocated": "1.00 GiB",
        "torch.reserved_unallocated": "0.25 GiB",
    }

    made = derive(book(laptop))

    assert made.value("balance.outside") == int(2.75 * GIB)
    assert made.value("balance.foreign_low") == int(2.75 * GIB) - int(1.5 * GIB) - int(0.8 * GIB)


def test_the_largest_row_of_a_table_is_self_when_it_is_reserved_plus_a_context() -> None:
    table = {
        "gpu.used": "23.00 GiB",
        "gpu.largest_row": "12.50 GiB",
        "torch.allocated": "11.00 GiB",
        "torch.reserved_unallocated": "1.00 GiB",
    }

    assert derive(book(table)).value("gpu.foreign") == int(10.5 * GIB)


def test_figures_are_not_given_where_a_failure_states_none() -> None:
    assert derive(book({"oom.seen": True})).value("oom.figures_given") is False
    assert derive(book(MESSAGE)).value("oom.figures_given") is True
    assert derive(book({})).get("oom.figures_given") is None


sizes = st.integers(min_value=0, max_value=200 * GIB)


@given(
    capacity=st.integers(min_value=GIB, max_value=200 * GIB), free=sizes, live=sizes, cache=sizes
)
def test_shares_stay_within_zero_and_one_whatever_the_figures(
    capacity: int, free: int, live: int, cache: int
) -> None:
    figures = {
        "oom.capacity": capacity,
        "oom.free": free,
        "torch.allocated": live,
        "torch.reserved_unallocated": cache,
    }

    made = derive(book(figures)).facts

    shares = [f.value for f in made.values() if f.key.endswith("_share")]
    assert shares
    assert all(0 <= share <= 1 for share in shares)
    assert made["balance.foreign_low"].value <= made["balance.outside"].value


@given(request=st.integers(min_value=1, max_value=100 * GIB))
def test_a_segment_is_never_smaller_than_its_request(request: int) -> None:
    assert segment_bytes(request) >= request


def test_a_message_without_a_size_states_no_absurd_one() -> None:
    assert derive(book({"oom.seen": True})).value("oom.absurd_size") is False


def test_an_exabyte_message_stays_absurd_whatever_is_missing() -> None:
    said = {"oom.seen": True, "oom.form": "exabyte", "oom.absurd_size": True}

    assert derive(book(said)).value("oom.absurd_size") is True


@pytest.mark.parametrize(
    ("largest", "total", "count", "twins"),
    [
        ("23.10 GiB", "68.40 GiB", 3, True),
        ("23.10 GiB", "31.00 GiB", 2, False),
        ("4.00 GiB", "4.00 GiB", 1, False),
    ],
)
def test_listed_processes_are_twins_where_each_is_as_large_as_this_one(
    largest: str, total: str, count: int, *, twins: bool
) -> None:
    listed = {
        "oom.listed_processes": count,
        "oom.listed_processes_bytes": total,
        "oom.largest_process": largest,
    }

    made = derive(book({**MESSAGE, **listed}))

    assert made.value("balance.listed_twins") is twins


CUT = {
    "oom.seen": True,
    "oom.requested": "300.00 MiB",
    "oom.capacity": "31.50 GiB",
    "oom.free": "120.00 MiB",
    "oom.listed_processes": 4,
    "oom.listed_processes_bytes": "31.20 GiB",
    "oom.largest_process": "19.10 GiB",
}


def test_of_a_message_cut_before_its_own_figures_all_but_the_largest_process_are_others() -> None:
    made = derive(book(CUT)).facts["balance.foreign_low"]

    assert made.value == 33500744909 - 20508468838
    assert made.slack > 0


def test_one_listed_process_may_be_this_one() -> None:
    alone = {**CUT, "oom.listed_processes": 1, "oom.listed_processes_bytes": "19.10 GiB"}

    assert derive(book(alone)).value("balance.foreign_low") is None
