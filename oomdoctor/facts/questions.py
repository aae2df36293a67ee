"""All questions that a person can be asked, by id, and which facts they give."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.facts import questions_host, questions_job, questions_paste, questions_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.facts.question import Question

TABLES = (questions_run, questions_job, questions_host, questions_paste)


@cache
def questions() -> Mapping[str, Question]:
    """Return all questions by id, in the order of the tables."""
    return {one.id: one for table in TABLES for one in table.ROWS}


@cache
def questions_by_fact() -> Mapping[str, Question]:
    """Return for each fact that an answer states the question that asks for it first."""
    found: dict[str, Question] = {}
    for one in questions().values():
        if one.kind in ("choice", "number"):
            for key in one.facts:
                found.setdefault(key, one)
    return found
