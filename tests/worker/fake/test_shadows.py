"""How many bytes the host holds of values on the card."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from oomdoctor.worker.fake.shadows import TOGETHER_LIMIT, WHOLE_LIMIT, Shadows, most_bytes

COUNT = TOGETHER_LIMIT // WHOLE_LIMIT


def test_many_shadows_are_bounded_together() -> None:
    shadows = Shadows()
    for address in range(3 * COUNT):
        shadows.make(address, WHOLE_LIMIT)

    assert shadows.total_bytes == TOGETHER_LIMIT
    kept = [address for address in range(3 * COUNT) if shadows.get(address) is not None]
    assert list(range(2 * COUNT, 3 * COUNT)) == kept


def test_what_was_asked_for_last_is_kept() -> None:
    shadows = Shadows()
    for address in range(COUNT):
        shadows.make(address, WHOLE_LIMIT)
    shadows.get(0)
    shadows.make(COUNT, WHOLE_LIMIT)

    assert shadows.get(0) is not None
    assert shadows.get(1) is None


def test_what_is_freed_makes_room() -> None:
    shadows = Shadows()
    shadows.make(1, WHOLE_LIMIT)
    shadows.forget(1)

    assert (shadows.total_bytes, shadows.get(1)) == (0, None)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.float32, torch.complex64])
def test_weights_and_states_are_followed_only_where_they_are_tables(dtype: torch.dtype) -> None:
    assert most_bytes(torch.empty(1, dtype=dtype)) < most_bytes(torch.empty(1, dtype=torch.int64))
