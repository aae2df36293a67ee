"""How far the run was: step, total, epoch, from the last progress line before the failure.

```
 10%|███       | 310/5200 [00:12<03:10,  1.33it/s]
CUDA out of memory ...                                   run.step 310, run.progress 0.06
```
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.phase_text import phase_before
from oomdoctor.evidence.progress_lines import Progress, parse_progress
from oomdoctor.model.core import Fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Value

_LOOK_BACK = 2000
_LOOK_AFTER = 4
_LATE_STEPS = 20


def progress_facts(document: Document, index: int) -> tuple[Fact, ...]:
    """Return run.step, run.total_steps, run.progress, run.epoch, ... at the line `index`."""
    told = phase_before(document, index)
    if told is not None and told.phase == "eval" and "%|" not in told.line.text:
        # the bars after `***** Running Evaluation *****` count evaluation batches
        index = told.at
    found = _last(document, index)
    facts: dict[str, Fact] = {}
    for progress in found:
        quote = document.quote(progress.line)
        for key, value, slack in _values(progress):
            facts.setdefault(key, Fact(key=key, value=value, slack=slack, quotes=(quote,)))
    total = _banner_total(document, index)
    if total is not None:
        facts.setdefault("run.total_steps", total)
    return tuple(facts.values())


def _last(document: Document, index: int) -> list[Progress]:
    """Return the last line that shows a step, and the last ones that show an epoch, a share."""
    own = document.lines[index].rank
    if own is None:
        return _last_of(document, index, None)
    return _last_of(document, index, own) or _last_of(document, index, None)


def _last_of(document: Document, index: int, rank: int | None) -> list[Progress]:
    """Search the lines of one rank, or of all: often the first rank alone shows its progress."""
    lines = document.lines
    before = range(index, max(-1, index - _LOOK_BACK), -1)
    after = range(index + 1, min(len(lines), index + 1 + _LOOK_AFTER))
    found: list[Progress] = []
    for at in (*before, *after):
        if at > index and found:
            break
        if rank is not None and lines[at].rank != rank:
            continue
        progress = parse_progress(lines[at])
        if progress is None:
            continue
        if progress.evaluates:
            progress = progress._replace(step=None, total=None, share=None)
        found.append(progress)
        if progress.step is not None or progress.share is not None:
            break
    return found


def _values(progress: Progress) -> Iterator[tuple[str, Value, float]]:
    step, total = _run_step(progress), progress.total
    if step is not None:
        yield "run.step", step, 0
        yield "run.first_step", step <= (0 if progress.done else 1), 0
        yield "run.late_step", step > _LATE_STEPS, 0
    if not progress.within_epoch:
        yield from _shares(progress)
    if progress.epoch is not None:
        yield "run.epoch", float(progress.epoch), 0
    if total and total > 1 and progress.step is not None and progress.step >= total:
        yield "run.epoch_boundary", True, 0


def _run_step(progress: Progress) -> int | None:
    """Return the step counted from the start of the run, where the line tells it."""
    if not progress.within_epoch or progress.step is None:
        return progress.step
    if progress.epoch is not None and progress.total:
        return int(progress.epoch) * progress.total + progress.step
    return None if progress.epoch else progress.step


def _shares(progress: Progress) -> Iterator[tuple[str, Value, float]]:
    if progress.total:
        yield "run.total_steps", progress.total, 0
        if progress.step is not None:
            yield "run.progress", min(1.0, progress.step / progress.total), 0
    elif progress.share is not None:
        yield "run.progress", progress.share, 0.005
        if progress.share >= 0.02:
            yield "run.first_step", False, 0


def _banner_total(document: Document, index: int) -> Fact | None:
    """Read `Total optimization steps = 23,676` of the Trainer's banner."""
    for at in range(index, max(-1, index - _LOOK_BACK), -1):
        line = document.lines[at]
        if "optimization steps" in line.text:
            found = _banner().search(line.text)
            if found is not None:
                value = int(found[1].replace(",", ""))
                return Fact(key="run.total_steps", value=value, quotes=(document.quote(line),))
    return None


@cache
def _banner() -> re.Pattern[str]:
    return re.compile(r"optimization steps\s{0,4}[=:]\s{0,4}(\d[\d,]*)")
