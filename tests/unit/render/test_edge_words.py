"""A bracket in words: what was proven, and where the range ended first."""

from __future__ import annotations

import pytest

from oomdoctor.model.trial import Bracket
from oomdoctor.render.bisect_page import edge_words


@pytest.mark.parametrize(
    ("fits_at", "ooms_at", "proven", "expected"),
    [
        (20.0, None, True, "batch 20 fits, and the range ends there"),
        (20.0, None, False, "batch 20 fits, and none was seen to fail"),
        (None, 1.0, True, "batch 1 does not fit, and nothing smaller was seen to"),
        (None, None, False, "batch: no trial has told anything"),
        (1024.0, 1025.0, True, "batch 1,024 fits, 1,025 does not"),
    ],
)
def test_an_edge_in_words(
    fits_at: float | None, ooms_at: float | None, proven: bool, expected: str
) -> None:
    bracket = Bracket(axis="batch", step=1, fits_at=fits_at, ooms_at=ooms_at, proven=proven)

    assert expected == edge_words(bracket)
