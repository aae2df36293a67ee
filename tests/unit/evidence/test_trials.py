"""How many trials or folds one process ran before the one that failed."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import trials
from tests.unit.evidence.documents import document_of

OOM = "RuntimeError: CUDA out of memory."


@pytest.mark.parametrize(
    ("text", "before"),
    [
        (f"[W 2024-01-01] Trial 4 failed because of the following error: {OOM}", 4),
        (f"[I 2024-01-01] Trial 0 finished with value: 0.5 and parameters: {{}}.\n{OOM}", 1),
        ("Setting status of trial#12 as TrialState.FAIL because of: RuntimeError()", 12),
        (f"===== Fold 3/5 =====\nstep 1\n{OOM}", 2),
        (f"Fold: 0\nstep 1\nFold: 1\n{OOM}\nFold: 2", 1),
        (f"training fold 4\n{OOM}", 0),
    ],
)
def test_trials_and_folds_before_the_failure_are_counted(text: str, before: int) -> None:
    (fact,) = trials.read(document_of(text)).facts
    assert (fact.key, fact.value) == ("run.trial", before)


@pytest.mark.parametrize(
    "text",
    ["unfold 3 of 4", "trial 3 of the new card", "a 10-fold increase", "fold 0.25", "folder 3"],
)
def test_other_words_are_no_trials(text: str) -> None:
    assert trials.read(document_of(text)).facts == ()
