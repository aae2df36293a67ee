"""Who asked for a block is told by the user's lines, then a library's, never by ours."""

from __future__ import annotations

import pytest

from oomdoctor.snapshot.stacks import Frame, Stack

USER = Frame("/home/me/train.py", 8, "main")
LIBRARY = Frame("/venv/lib/python3.11/site-packages/peft/layer.py", 3, "forward")
OURS = Frame("/venv/lib/oomdoctor/virtual/inside/known_values.py", 73, "run")


@pytest.mark.parametrize(
    ("frames", "first"),
    [
        ((OURS, LIBRARY, USER), USER),
        ((OURS, LIBRARY), LIBRARY),
        ((OURS,), None),
        ((), None),
    ],
)
def test_code_of_ours_asks_for_nothing(frames: tuple[Frame, ...], first: Frame | None) -> None:
    assert Stack(frames, backward=True).first == first
