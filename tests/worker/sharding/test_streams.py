from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.memory.stream import Stream

pytest.importorskip("torch")

import torch

from oomdoctor.memory.stream_replay import replay
from oomdoctor.worker.fake.card import FakeCard
from oomdoctor.worker.fake.trace import shim
from tests.worker.fake.cards import A100


def on_card(run: Callable[[], None]) -> Stream:
    """Run on the fake card and return its stream of allocations."""
    with FakeCard(A100, shim()) as fake:
        run()
        return fake.tracker.stream("test", {})


def test_what_is_made_on_another_stream_comes_from_its_own_pool() -> None:
    def run() -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.empty(5000, device="cuda")
        torch.empty(5000, device="cuda")

    stream = on_card(run)

    assert [one.cuda_stream > 0 for one in stream.allocations] == [True, False]
    assert replay(stream).peak_reserved == 4 << 20


def test_backward_runs_on_the_stream_of_forward() -> None:
    def run() -> None:
        row = torch.empty(5000, device="cuda", requires_grad=True)
        with torch.cuda.stream(torch.cuda.Stream()):
            product = row * row
        (product * 2).sum().backward()

    streams = [
        one.cuda_stream for one in on_card(run).allocations if one.operator.startswith("aten.mul")
    ]

    assert streams[0] == streams[-1] > 0


def test_a_block_that_another_stream_uses_is_marked() -> None:
    def run() -> None:
        torch.empty(5000, device="cuda").record_stream(torch.cuda.Stream())

    (mark,) = on_card(run).marks

    assert (mark.kind, mark.number) == ("use", 0)


def test_an_emptied_storage_frees_its_bytes_and_takes_them_again() -> None:
    def run() -> None:
        row = torch.empty(5000, device="cuda")
        view = row[10:]
        row.untyped_storage().resize_(0)
        row.untyped_storage().resize_(20_000)
        assert view.untyped_storage().nbytes() == 20_000

    stream = on_card(run)

    assert list(stream.events) == [0, -1, 1, -2]
    assert [one.size for one in stream.allocations] == [20_000, 20_000]
