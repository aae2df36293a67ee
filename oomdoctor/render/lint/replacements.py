"""A unified diff as replacements of whole lines.

Sample:

    @@ -2,3 +2,2 @@
     base_model: big-model
    -fp16: true
     bf16: true

deletes line 3: from its first column to the first column of line 4.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_NEWLINE = "\\"


class Replacement(NamedTuple):
    """Text between two places (1-based, the end exclusive) and what is put there instead."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@cache
def _hunk() -> re.Pattern[str]:
    return re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


def replacements(diff: str) -> tuple[Replacement, ...]:
    """Return the changes of a diff of one file, in the order of its lines."""
    return tuple(_changes(diff))


def _changes(diff: str) -> Iterator[Replacement]:
    number = 0
    removed: list[str] = []
    added: list[str] = []
    for row in [*diff.split("\n"), "@@"]:
        head, text = row[:1], row[1:]
        if number and head == "-":
            removed.append(f"{text}\n")
        elif number and head == "+":
            added.append(f"{text}\n")
        elif number and head == NO_NEWLINE:
            last = added or removed
            if last:
                last[-1] = last[-1].removesuffix("\n")
        else:
            if removed or added:
                yield _replacement(number, removed, added)
            number += len(removed) + (head == " ")
            removed, added = [], []
            hit = _hunk().match(row)
            if hit:
                # a hunk without old lines names the line before it
                number = int(hit[1]) + (hit[2] == "0")


def _replacement(number: int, removed: list[str], added: list[str]) -> Replacement:
    end_line, end_column = number + len(removed), 1
    if removed and not removed[-1].endswith("\n"):
        end_line, end_column = end_line - 1, len(removed[-1]) + 1
    return Replacement(number, 1, end_line, end_column, "".join(added))
