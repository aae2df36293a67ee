"""Pasted texts of many pieces: what bounds the work on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import segments

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest


def test_text_that_changes_its_kind_all_the_time_ends_as_notes() -> None:
    text = "batch_size: 4\npython train.py --lr 3\n" * 2 * segments.MOST_SEGMENTS

    found = segments.split("a.txt", text)

    assert len(found) == segments.MOST_SEGMENTS + 1
    assert found[-1].kind == "notes"
    assert sum(len(one.lines.rows) for one in found) == text.count("\n")


def test_brackets_that_never_close_are_followed_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    followed: list[int] = []
    whole = segments.python_extent

    def extent(lines: Sequence[str], start: int) -> int:
        followed.append(start)
        return whole(lines, start)

    monkeypatch.setattr(segments, "python_extent", extent)

    segments.split("a.txt", "x = f(\n" * 3000)

    assert len(followed) == segments.MOST_UNCLOSED
