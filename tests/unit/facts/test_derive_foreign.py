"""What lies outside the allocator, where card and host share one memory."""

from __future__ import annotations

import pytest

from oomdoctor.facts.derive import derive
from tests.unit.facts.stated import book

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
