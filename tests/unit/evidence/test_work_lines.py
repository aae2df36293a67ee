"""Work between two failures is found, whatever order the gaps are asked in."""

from __future__ import annotations

import pytest

from oomdoctor.evidence.work_lines import WorkLines
from oomdoctor.model.core import LogLine

TEXTS = ("step: 3", "lost", "lost", "  7%|#  | 7/99 [00:01<00:09, 9.9it/s]", "lost", "lost")
LINES = tuple(LogLine(at, text, text) for at, text in enumerate(TEXTS, start=1))


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [(0, 1, True), (1, 3, False), (1, 4, True), (4, 6, False), (3, 3, False)],
)
def test_a_gap_tells_of_work_only_where_a_line_in_it_does(
    start: int, stop: int, *, expected: bool
) -> None:
    assert expected == WorkLines(LINES).any_between(start, stop)


def test_gaps_of_several_writers_may_overlap_and_go_back() -> None:
    work = WorkLines(LINES)
    asked = [(4, 6), (1, 4), (1, 3), (0, 2), (2, 6), (4, 6)]
    assert [work.any_between(*gap) for gap in asked] == [False, True, False, True, True, False]
