"""Shortages that the allocator counted, where no line of the input announces one.

    |            CUDA OOMs: 1            |        cudaMalloc retries: 3         |
    {'active_bytes.all.current': 15032385536, ..., 'num_alloc_retries': 2, 'num_ooms': 1}

A count that work goes on behind is one that the program got over.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.events import fact
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.work_lines import WorkLines
from oomdoctor.model.core import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document

WORDS = (" ooms:", "num_ooms")
LONGEST = 4000
MOST_AFTER = 5000
"""So far behind the count work that goes on is looked for."""

_BACKENDS = ("cuda", "hip", "xpu", "npu", "musa")


@cache
def _count() -> re.Pattern[str]:
    return re.compile(
        r"\b(?P<device>\w+) OOMs:\s*[1-9]\d*\s*\||\bnum_ooms['\"]?\s*[:,=]\s*[1-9]\d*"
    )


def counted(document: Document) -> Iterator[Failure]:
    """Yield the failure that the first count above zero stands for, if it ended the work."""
    for index in haystack_of(document).telling(WORDS):
        line = document.lines[index]
        found = _count().search(line.text) if len(line.text) <= LONGEST else None
        if found is None:
            continue
        end = min(len(document.lines), index + 1 + MOST_AFTER)
        if not WorkLines(document.lines).any_between(index + 1, end):
            device = (found["device"] or "cuda").lower()
            quote = document.quote(line, *found.span())
            yield Failure(
                kind="gpu-oom",
                order=line.number,
                line_quote=quote,
                facts=(
                    fact("oom.seen", value=True, quotes=[quote]),
                    fact("oom.backend", device if device in _BACKENDS else "other", [quote]),
                    fact("oom.form", "allocator", [quote]),
                    fact("oom.figures_given", value=False, quotes=[quote]),
                ),
                rank=line.rank,
                stamp=line.stamp,
                indirect=True,
            )
        return
