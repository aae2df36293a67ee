"""Registry rows of what only a person can tell: trials, changes, what stood by."""

from __future__ import annotations

from oomdoctor.facts.spec import enum

ROWS = (
    enum(
        "trial.smaller_batch",
        "What half the batch (or shorter rows) did: it ran, it failed later, it failed alike.",
        ("runs", "later", "same"),
        obtain="Run the job once with half the batch, or half the length.",
        cost_s=120,
    ),
    enum(
        "history.changed",
        "What changed between the last run that went well and the one that failed.",
        ("nothing", "driver", "library", "code", "data", "settings", "machine"),
        obtain="Compare with the last run that went well: driver, pip freeze, git log, settings.",
        cost_s=60,
    ),
)
