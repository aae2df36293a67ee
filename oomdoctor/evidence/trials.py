"""Trials of a search and folds of a cross-validation that one process ran before it failed.

[I 2021-02-01 15:20:11,100] Trial 7 finished with value: 0.31 and parameters: {...}
[W 2021-02-01 15:24:42,103] Trial 8 failed because of the following error: RuntimeError(...)
Setting status of trial#28 as TrialState.FAIL because of the following error: ...
===== Fold 3/5 =====                        two folds were trained before this one
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import stated
from oomdoctor.evidence.moment import failure_index
from oomdoctor.model.core import Reading

if TYPE_CHECKING:
    from oomdoctor.model.core import Document, Quote

ANCHORS = ("trial ", "trial#", "fold ", "fold:", "fold=", "fold_")
LONGEST = 400


@cache
def _trial() -> re.Pattern[str]:
    return re.compile(
        r"(?<![A-Za-z])trial ?#?(?P<number>\d{1,6})"
        r" (?P<how>failed|finished|pruned|as TrialState\.(?:FAIL|PRUNED|COMPLETE))",
        re.IGNORECASE,
    )


@cache
def _fold() -> re.Pattern[str]:
    return re.compile(
        r"^\W{0,20}(?:(?:starting|start|running|training|processing) )?(?:k-?)?fold[ :#=_]{0,3}"
        r"(?P<number>\d{1,3})(?![\d.,%])(?: ?(?:/|of) ?(?P<total>\d{1,3}))?",
        re.IGNORECASE,
    )


def read(document: Document) -> Reading:
    """Return run.trial: how many trials or folds ended before the one that failed."""
    failure = failure_index(document)
    end = len(document.lines) if failure is None else failure + 1
    found: tuple[int, Quote] | None = None
    folds: set[int] = set()
    for line in document.lines[:end]:
        text = line.text[:LONGEST]
        lowered = text.lower()
        if not any(anchor in lowered for anchor in ANCHORS):
            continue
        trial = _trial().search(text)
        fold = _fold().search(text) if trial is None else None
        if trial is not None:
            failed = trial["how"].lower().endswith(("failed", "fail"))
            found = int(trial["number"]) + (0 if failed else 1), document.quote(line, *trial.span())
        elif fold is not None:
            folds.add(int(fold["number"]))
            counted = int(fold["number"]) - 1 if fold["total"] else 0
            before = max(len(folds) - 1, counted)
            found = before, document.quote(line, *fold.span())
    if found is None:
        return Reading()
    return Reading(facts=(stated("run.trial", found[0], found[1]),))
