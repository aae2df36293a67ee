"""Small equal processes in an allocator's message, beside the one that works on the card."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import torch_oom
from tests.unit.evidence.documents import document_of

MIB = 1 << 20
HEAD = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 40.00 MiB. GPU 0 has a total "
    "capacity of 23.69 GiB of which 21.62 MiB is free. "
)
OWN = (
    "Including non-PyTorch memory, this process has {own} memory in use. Of the allocated memory "
    "17.90 GiB is allocated by PyTorch, and 240.00 MiB is reserved by PyTorch but unallocated.\n"
)


def facts_of(sizes: list[str], *, own: str = "18.80 GiB") -> dict[str, object]:
    listed = "".join(
        f"Process {41 + at} has {size} memory in use. " for at, size in enumerate(sizes)
    )
    (failure,) = torch_oom.read(document_of(HEAD + listed + OWN.format(own=own))).failures
    return {fact.key: fact.value for fact in failure.facts}


def test_equal_small_processes_beside_a_large_one_are_counted_and_summed() -> None:
    facts = facts_of(["706.00 MiB", "706.00 MiB", "710.00 MiB", "4.00 GiB"])

    assert facts["oom.small_twins"] == 3
    assert facts["oom.small_twins_bytes"] == (706 + 706 + 710) * MIB


def test_the_large_one_may_be_a_listed_process() -> None:
    facts = facts_of(["706.00 MiB", "706.00 MiB", "706.00 MiB", "16.00 GiB"], own="1.00 GiB")

    assert facts["oom.small_twins"] == 3


@pytest.mark.parametrize(
    ("sizes", "own"),
    [
        (["706.00 MiB", "706.00 MiB"], "18.80 GiB"),
        (["706.00 MiB", "1.50 GiB", "300.00 MiB"], "18.80 GiB"),
        (["3.00 GiB", "3.00 GiB", "3.00 GiB"], "12.80 GiB"),
        (["1.19 GiB", "1.19 GiB", "1.19 GiB"], "1.20 GiB"),
        (["17.00 MiB", "17.00 MiB", "17.00 MiB"], "18.80 GiB"),
        ([], "18.80 GiB"),
    ],
    ids=["two", "unequal", "large", "no-larger-one", "no-contexts", "none-listed"],
)
def test_other_lists_hold_no_small_twins(sizes: list[str], own: str) -> None:
    assert "oom.small_twins" not in facts_of(sizes, own=own)
