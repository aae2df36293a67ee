"""What lies outside the allocator, where card and host share one memory."""

from __future__ import annotations

import pytest

from oomdoctor.facts.derive import derive
from oomdoctor.model.enums import Origin
from oomdoctor.units import format_size
from tests.unit.facts.stated import GIB, book

MESSAGE = {
    "oom.seen": True,
    "oom.requested": "3.00 GiB",
    "oom.free": "700.00 MiB",
    "torch.allocated": "50.00 GiB",
    "torch.reserved_unallocated": "80.00 MiB",
}


@pytest.mark.parametrize(
    ("backend", "capacity", "name", "known"),
    [
        ("hip", "128.00 GiB", None, False),
        ("hip", "191.98 GiB", None, True),
        ("hip", "63.98 GiB", None, True),
        ("cuda", "119.00 GiB", None, True),
        ("cuda", "119.00 GiB", "NVIDIA GB10", False),
        ("cuda", "61.40 GiB", "Orin", False),
    ],
)
def test_a_shared_memory_tells_nothing_of_other_processes(
    backend: str, capacity: str, name: str | None, *, known: bool
) -> None:
    facts = {**MESSAGE, "oom.backend": backend, "oom.capacity": capacity}
    made = derive(book({**facts, "gpu.name": name} if name else facts))

    assert (made.value("balance.outside") is not None) is known
    assert (made.value("balance.foreign_low") is not None) is known


OUTSIDE = "3.42 GiB outside this pool less 1.50 GiB that a context can take"
NAMED = {
    "oom.seen": True,
    "oom.requested": "1.96 GiB",
    "oom.capacity": "23.64 GiB",
    "oom.free": "1.12 GiB",
    "oom.this_process": "19.50 GiB",
    "torch.allocated": "18.50 GiB",
    "torch.reserved_unallocated": "612.00 MiB",
    "oom.listed_processes": 1,
    "oom.largest_process": "3.00 GiB",
    "oom.listed_processes_bytes": "3.00 GiB",
}


def test_a_named_process_that_is_all_of_the_rest_is_stated_as_printed() -> None:
    found = derive(book(NAMED)).facts["gpu.foreign"]

    assert (found.origin, found.value) == (Origin.STATED, 3 * GIB)
    assert found.source == "the process that the message names"


def test_a_rest_larger_than_the_named_process_stays_a_difference() -> None:
    found = derive(book({**NAMED, "oom.this_process": "17.50 GiB"})).facts["gpu.foreign"]

    assert (found.origin, found.source) == (Origin.DERIVED, "capacity - free - this process")


@pytest.mark.parametrize(
    ("left_out", "low", "made"),
    [
        ((), "3.00 GiB", "named in the message"),
        (
            ("oom.listed_processes", "oom.largest_process", "oom.listed_processes_bytes"),
            "1.92 GiB",
            "about 3.02 GiB by the difference of its figures",
        ),
        (
            tuple(key for key in NAMED if key.startswith(("oom.l", "oom.t"))),
            "1.92 GiB",
            OUTSIDE,
        ),
    ],
)
def test_a_lower_bound_says_what_it_is_made_of(
    left_out: tuple[str, ...], low: str, made: str
) -> None:
    found = derive(book({key: value for key, value in NAMED.items() if key not in left_out}))

    assert format_size(int(found.value("balance.foreign_low") or 0)) == low
    assert found.value("balance.foreign_made") == made
