"""Clauses that are left out because their literal is absent could not have matched."""

from __future__ import annotations

import re

import pytest

from oomdoctor.evidence.torch_oom_text import CLAUSES, MARKS, SIZE


def test_every_clause_has_a_mark() -> None:
    assert list(CLAUSES) == list(MARKS)


@pytest.mark.parametrize("name", CLAUSES)
def test_a_mark_stands_in_the_fixed_part_of_its_clause(name: str) -> None:
    fixed = CLAUSES[name].replace(SIZE, "")
    fixed = re.sub(r"\(\?:(?:[^()]|\\[()])*(?:\(\?:[^()]*\)\??(?:[^()]|\\[()])*)*\)\?", "", fixed)

    assert MARKS[name] in fixed.replace("\\", "")
