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
    """Return for each fact that an answer states the question that is most about it."""
    found: dict[str, tuple[int, Question]] = {}
    for one in questions().values():
        if one.kind not in ("choice", "number"):
            continue
        for key in one.facts:
            weight = sum(
                item.partition("=")[0] == key for each in one.choices for item in each.sets
            )
            if key not in found or weight > found[key][0]:
                found[key] = (weight, one)
    return {key: one for key, (_, one) in found.items()}
