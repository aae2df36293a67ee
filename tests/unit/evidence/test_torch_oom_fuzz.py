"""Cut, spliced and mutated messages never raise, and no cut invents a number."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.evidence import host_signs, torch_lookalikes, torch_oom
from oomdoctor.units import parse_size
from tests.hang import no_hang
from tests.unit.evidence.documents import RAW, document_of

TEXTS = tuple(path.read_text(encoding="utf-8") for path in sorted(RAW.glob("torch_oom/*.txt")))
READERS = (torch_oom, torch_lookalikes, host_signs)
SIZES = ("oom.requested", "oom.capacity", "oom.free", "oom.allowed", "torch.allocated")
SIZE = re.compile(r"\d+(?:\.\d+)?\s*(?:bytes|[KMGTPE]i?B)")

texts = st.sampled_from(TEXTS)
junk = st.text(alphabet=" \t\n\r.;,:()'\"0123456789GiBMKbytes\x1b[rank]µ", max_size=12)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Splice two fixtures at any place, with junk between them."""
    one, other = draw(texts), draw(texts)
    cut, start = draw(st.integers(0, len(one))), draw(st.integers(0, len(other)))
    return one[:cut] + draw(junk) + other[start:]


@settings(max_examples=150, deadline=None)
@given(mutated())
def test_no_reader_raises_on_a_mutated_log(text: str) -> None:
    document = document_of(text)

    for reader in READERS:
        for failure in reader.read(document).failures:
            assert failure.line_quote.line >= 1


@pytest.mark.parametrize("text", TEXTS)
def test_no_cut_invents_a_number(text: str) -> None:
    printed = {size.bytes for size in map(parse_size, SIZE.findall(text)) if size}
    printed |= {int(digits) for digits in re.findall(r"\d+", text)}

    for cut in range(0, len(text), 3):
        for failure in torch_oom.read(document_of(text[:cut])).failures:
            figures = {one.value for one in failure.facts if one.key in SIZES}
            assert figures <= printed


@pytest.mark.parametrize("text", TEXTS)
def test_facts_only_grow_with_the_text(text: str) -> None:
    whole = {
        (one.key, one.value)
        for failure in torch_oom.read(document_of(text)).failures
        for one in failure.facts
        if one.key in SIZES and one.slack
    }

    for cut in range(0, len(text), 7):
        for failure in torch_oom.read(document_of(text[:cut])).failures:
            facts = {
                (one.key, one.value) for one in failure.facts if one.key in SIZES and one.slack
            }
            assert facts <= whole or "CUDACachingAllocator.cpp:" in text


@pytest.mark.parametrize(
    "line",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; " * 1200,
        "thread: [1,0,0] Assertion `a` " * 2200,
        "cudaMalloc CUDA error out of memory " * 1800,
        "shm </torch_1 No space left on device " * 1700,
        "RESOURCE_EXHAUSTED ran out of memory trying to allocate " * 1100,
        "(" * 65_536 + "out of memory",
        " " * 65_000 + "CUDA out of memory",
        "9" * 65_000 + " MiB free; out of memory",
    ],
)
def test_a_long_line_does_not_hang_a_reader(line: str) -> None:
    document = document_of("\n".join([line] * 4))

    with no_hang():
        readings = [reader.read(document) for reader in READERS]

    assert len(readings) == len(READERS)
