"""The share of main memory in use is read from what programs print."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import host_use
from tests.unit.evidence.documents import document_of

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("[utils.py:8] CPU Virtual Memory:  used = 28.4 GB, percent = 22.6%", 0.226),
        ("step 40 | RAM usage: 93.1% | VRAM: 71.0%", 0.931),
        ("host memory 88 % in use", 0.88),
        (
            ("Memory on the node (IP: 10.0.0.4, ID: 5f) where the task was running was 29.50GB / "
            "31.00GB (0.952), which exceeds the threshold of 0.95."),
            0.952,
        ),
    ],
)  # fmt: skip
def test_a_printed_share_is_read(text: str, share: float) -> None:
    facts = {fact.key: fact.value for fact in host_use.read(document_of(text)).facts}
    assert pytest.approx(share) == facts["host.used_share"]


@pytest.mark.parametrize("text", ["VRAM: 71.0%", "program memory 50%", "CPU memory: 3 GB"])
def test_other_shares_are_left_alone(text: str) -> None:
    assert host_use.read(document_of(text)).facts == ()


def test_used_bytes_and_share_give_the_whole_with_its_rounding() -> None:
    text = "CPU Virtual Memory:  used = 57.2 GB, percent = 91.5%"
    total = next(
        fact for fact in host_use.read(document_of(text)).facts if fact.key == "host.ram_total"
    )
    assert isinstance(total.value, int)
    assert abs(total.value - 62.51 * GIB) < total.slack


def test_the_last_share_before_the_failure_counts() -> None:
    text = "RAM usage: 20%\nRAM usage: 95%\nRuntimeError: CUDA out of memory.\nRAM usage: 3%"
    (fact,) = host_use.read(document_of(text)).facts
    assert pytest.approx(0.95) == fact.value
