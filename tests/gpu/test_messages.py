"""What torch writes about a device is read as it stands there."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.facts.gpus import fits_capacity, lookup
from oomdoctor.pipeline import assemble, gather

MIB = 1 << 20


def size(text: str, key: str) -> int:
    """Return a size that is read from a text."""
    fact = assemble(gather(text)).get(key)
    assert fact is not None
    assert isinstance(fact.value, int)
    return fact.value


def message(torch: Any, wanted: int) -> str:
    with pytest.raises(torch.cuda.OutOfMemoryError) as caught:
        torch.empty(wanted, dtype=torch.uint8, device="cuda")
    return f"torch.OutOfMemoryError: {caught.value}"


def test_the_figures_of_an_out_of_memory_error_are_those_of_the_device(torch: Any) -> None:
    free, total = torch.cuda.mem_get_info()

    text = message(torch, total + 100 * MIB)

    tolerance = 16 * MIB  # a size in GiB has two digits after the point
    assert abs(size(text, "oom.requested") - (total + 100 * MIB)) < tolerance
    assert abs(size(text, "oom.capacity") - total) < tolerance
    assert abs(size(text, "oom.free") - free) < tolerance


def test_a_memory_summary_says_what_torch_counted(torch: Any) -> None:
    kept = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")

    text = torch.cuda.memory_summary()

    assert kept.numel() == 64 * MIB
    assert abs(size(text, "torch.allocated") - torch.cuda.memory_allocated()) <= MIB
    assert abs(size(text, "torch.reserved") - torch.cuda.memory_reserved()) <= MIB


def test_the_device_is_a_card_of_the_table_with_its_memory(torch: Any) -> None:
    device = torch.cuda.get_device_properties(0)
    found = lookup(device.name)
    if not found:
        pytest.skip(f"{device.name} is in no table of ours")

    assert f"{device.major}.{device.minor}" in {one.compute_capability for one in found}
    assert fits_capacity(found, device.total_memory)
