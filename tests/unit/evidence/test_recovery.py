"""A shortage that the program got over is no failure, and one that it did not is."""

from __future__ import annotations

import pytest

from oomdoctor.evidence.readers import read_all
from tests.unit.evidence.documents import document_of

RETRY = "Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding."
FAILED = "!!! Exception during processing !!! Allocation on device"
DONE = "Prompt executed in 44.02 seconds"
POOL = "Allocator (GPU_0_bfc) ran out of memory trying to allocate"
TUNING = "E0304 [0/0] out of resource: triton_mm Required: 147456 Hardware limit: 101376"


@pytest.mark.parametrize(
    ("lines", "orders"),
    [
        ([RETRY, "100%|###| 4/4", DONE], []),
        ([RETRY], [1]),
        ([DONE, RETRY], [2]),
        ([RETRY, DONE, "got prompt", *["-"] * 20, FAILED, DONE], [24]),
        ([TUNING, "E0304 [0/0] Ignoring this choice."], []),
        (["E0304 [0/0] Runtime error during autotuning: ", TUNING], []),
        ([TUNING], [1]),
        ([TUNING, *["-"] * 9, "Ignoring this choice."], [1]),
        ([f"{POOL} 2.57Gi", "B. The caller indicates that this is not a failure"], []),
        ([f"{POOL} 2.57Gi", "B with freed_by_count=0."], [1]),
    ],
)
def test_only_what_was_not_answered_is_a_failure(lines: list[str], orders: list[int]) -> None:
    failures = read_all(document_of("\n".join(lines))).failures

    assert orders == [failure.order for failure in failures]


def test_a_retry_that_fails_as_well_is_a_failure() -> None:
    failures = read_all(document_of("\n".join([RETRY, *["-"] * 20, FAILED, DONE]))).failures

    assert 22 in [failure.order for failure in failures]
