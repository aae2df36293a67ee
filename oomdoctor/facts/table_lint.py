"""Registry rows about single keys and files of a lint run; each item has a book of its own."""

from __future__ import annotations

from oomdoctor.facts.spec import text

ROWS = (
    text("lint.unreadable", "Why a file cannot be read."),
    text("lint.unknown_key", "A key that its framework does not know."),
    text("lint.suggestion", "The known key that looks most like it."),
    text("lint.disagreement", "The fact that two files of one job state differently."),
    text("lint.value", "The value that is overruled."),
    text("lint.other_value", "The value that is taken."),
    text("lint.other_place", "Where the value that is taken stands, as file:line."),
)
