"""The serving engine that logs a failure, told by the prefix of the failing line alone.

ERROR 01-02 10:00:00 [engine.py:160] torch.OutOfMemoryError: CUDA out of memory. ...          vLLM
(EngineCore_DP0 pid=71) ERROR 01-02 10:00:00 [core.py:396] torch.OutOfMemoryError: ...
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import derived
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.model.core import Reading

if TYPE_CHECKING:
    from oomdoctor.model.core import Document

ANCHORS = ("out of memory", "outofmemory")
PREFIX_CHARS = 160


@cache
def _vllm() -> re.Pattern[str]:
    return re.compile(
        r"\((?:EngineCore|VllmWorker)\w*(?: \w+=\d+)*\)"
        r"|\b(?:ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w/]+\.py:\d+\]"
    )


def read(document: Document) -> Reading:
    """Return the framework where the line of the failure carries an engine's prefix."""
    for index in haystack_of(document).telling(ANCHORS):
        line = document.lines[index]
        if line.text == line.raw or _vllm().search(line.raw[:PREFIX_CHARS]) is None:
            continue
        source = "prefix of the engine's log"
        fact = derived("job.framework", "vllm", document.quote(line), source=source)
        return Reading(facts=(fact,))
    return Reading()
