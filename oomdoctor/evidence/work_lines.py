"""Which lines show that work went on: progress, a prompt, a numbered step.

```
 10%|███       | 310/5200 [00:12<03:10,  1.33it/s]     epoch: 3     step 17     >>> train()
```
Between the failures of many ranks lie the same lines again and again: each is looked at once.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.core import LogLine

_LONGEST = 400


class WorkLines:
    """The lines of a document that show work, found out as far as they are asked for."""

    def __init__(self, lines: Sequence[LogLine]) -> None:
        """Start without having looked at any line."""
        self._lines = lines
        self._start = self._stop = 0
        self._found: list[int] = []

    def any_between(self, start: int, stop: int) -> bool:
        """Say whether one of the lines `start:stop` shows work."""
        if start >= stop:
            return False
        if start < self._start or self._start == self._stop:
            self._start = self._stop = start
            self._found.clear()
        at = bisect_left(self._found, start)
        if at < len(self._found):
            return self._found[at] < stop
        while self._stop < stop:
            index = self._stop
            self._stop += 1
            if _work().search(self._lines[index].text[:_LONGEST]):
                self._found.append(index)
                if index >= start:
                    return True
        return False


@cache
def _work() -> re.Pattern[str]:
    return re.compile(
        r"^\s*(?:>>>|In ?\[|\$ )|\d%\||\bit/s\b|\bs/it\b"
        r"|\b(?:epoch|step|iter(?:ation)?|trial|batch)\b\s*[:=#\[]?\s*\d",
        re.IGNORECASE,
    )
