"""The rank that a log gives its own process, where its text says it once and for all.

```
LOCAL_RANK=3     local_rank: 3     Initialized rank 3 of 8     RANK=11
```
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.haystack import haystack_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document

_WORDS = ("rank=", "rank =", "rank:", "rank ", "rank'")
_OF_OTHERS = ("(pid", "exitcode", "exit code")
_MOST_LINES = 400


def own_rank(document: Document) -> tuple[int | None, str]:
    """Return the one rank that the text gives its own process, and the words that say so.

    A global rank goes before a local one; a text that names several speaks of others.
    """
    if not haystack_of(document).has("rank"):
        return None, ""
    found = list(_values(document))
    for kind in ("rank", "of", "local_rank"):
        values = {value for label, value in found if label == kind}
        if len(values) == 1:
            return values.pop(), f"its text says {'rank' if kind == 'of' else kind}"
    return None, ""


def _values(document: Document) -> Iterator[tuple[str, int]]:
    for index in haystack_of(document).lines_with(_WORDS)[:_MOST_LINES]:
        text = document.lines[index].text[:2000]
        if any(word in text for word in _OF_OTHERS):
            continue
        job = "world" in text or "local" in text.lower()
        for match in _pattern().finditer(text):
            if match["label"] == "rank" and not job:
                continue  # that of an adapter, perhaps
            label = (match["label"] or "of").lower().replace("global_", "")
            yield label, int(match["a"] or match["b"])


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(
        r"(?<![A-Za-z_])(?P<label>(?:global_|local_|LOCAL_|GLOBAL_)?(?:RANK|rank))'?\s?[=:]\s?"
        r"(?P<a>\d{1,5})\b|(?i:\brank) (?P<b>\d{1,5}) (?:of|/) \d{1,5}\b"
    )
