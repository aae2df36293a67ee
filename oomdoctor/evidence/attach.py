"""Which stack, phase and step belong to which failure, and the facts they give it.

```
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 9, in <module>
[rank0]: torch.OutOfMemoryError: CUDA out of memory. ...     <- a failure; the stack ends in it
```
A stack belongs to the failure that it ends in, else to the nearest one of the same writer, and
one that breaks off to the message of another rank right behind it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING

from oomdoctor.evidence.frames import exception_of
from oomdoctor.evidence.free_stacks import FreeStacks
from oomdoctor.evidence.phase import phase_of
from oomdoctor.evidence.phase_text import phase_at, phase_before
from oomdoctor.evidence.progress import progress_facts
from oomdoctor.evidence.python_traceback import facts_of, quoted_code
from oomdoctor.model.core import Fact
from oomdoctor.record import NamedTuple, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.evidence.stacks import Stack
    from oomdoctor.model.core import Document, Failure

_AGAIN_LINES = 60
_TRACED = frozenset({"gpu-oom", "host-oom", "shm", "assert", "illegal-access", "other"})


class Located(NamedTuple):
    """A failure, the index of its line in the document, and the stack that belongs to it."""

    failure: Failure
    at: int
    stack: Stack | None


def locate(
    document: Document, failures: Sequence[Failure], found: Sequence[Stack]
) -> tuple[Located, ...]:
    """Find the line and the stack of each failure; exact matches are given away first."""
    numbers = [line.number for line in document.lines]
    places = [_index_of(document, failure, numbers) for failure in failures]
    free = FreeStacks(document, found)
    owned = {position: free.take_ending_in(index) for position, index in enumerate(places)}
    for position, index in enumerate(places):
        if owned[position] is None:
            # a launcher prints its own traceback behind the message of the rank that failed
            owned[position] = (
                free.take_before(index) or quoted_code(document, index) or free.take_after(index)
            )
    for position, index in enumerate(places):
        if owned[position] is None and failures[position].kind == "gpu-oom":
            owned[position] = free.take_of_a_peer(index)
    located = [
        Located(failure, places[position], owned[position])
        for position, failure in enumerate(failures)
    ]
    return tuple(_borrowed(located))


def _borrowed(located: Sequence[Located]) -> Iterator[Located]:
    """Give a message that is printed again with its traceback a little later that traceback."""
    traced: dict[tuple[str, int | None], list[tuple[int, Stack]]] = {}
    for one in located:
        if one.stack is not None:
            key = (one.failure.kind, one.failure.rank)
            traced.setdefault(key, []).append((one.at, one.stack))
    for rows in traced.values():
        rows.sort(key=itemgetter(0))
    for one in located:
        rows = traced.get((one.failure.kind, one.failure.rank), [])
        at = bisect_right(rows, one.at, key=itemgetter(0))
        near = at < len(rows) and rows[at][0] - one.at <= _AGAIN_LINES
        yield one._replace(stack=rows[at][1]) if one.stack is None and near else one


def attached(document: Document, located: Located) -> Failure:
    """Return the failure with the facts of its stack, phase and progress added."""
    failure = located.failure
    stack = located.stack
    facts = list(failure.facts)
    held = {fact.key for fact in facts}
    extra: list[Fact] = []
    if stack is not None:
        extra.extend(facts_of(document, stack))
    extra.extend(_class_fact(document, located.at))
    extra.extend(_phase_facts(document, located, extra))
    if failure.kind in _TRACED:
        extra.extend(progress_facts(document, located.at))
    if failure.rank is not None:
        extra.append(Fact(key="run.rank", value=failure.rank, quotes=(failure.line_quote,)))
    for fact in extra:
        if fact.key not in held:
            held.add(fact.key)
            facts.append(fact)
    return replace(failure, facts=tuple(facts))


def _class_fact(document: Document, index: int) -> list[Fact]:
    """Name the exception's class where the failing line itself starts with it."""
    line = document.lines[index]
    named = exception_of(line.text)
    if named is None or named[0] is None:
        return []
    return [Fact(key="trace.exception", value=named[0], quotes=(document.quote(line),))]


def _phase_facts(document: Document, located: Located, facts: list[Fact]) -> list[Fact]:
    """Let the lines before the failure tell the phase where the stack does not settle it."""
    stack = located.stack
    shown = next((fact for fact in facts if fact.key == "run.phase"), None)
    found = phase_of(stack) if stack is not None and shown is not None else None
    if found is not None and found.certain:
        return []
    start = located.at if stack is None else min(located.at, stack.first)
    told = phase_at(document, located.at) or phase_before(document, start)
    if told is None:
        return []
    if shown is not None:
        facts.remove(shown)
    quote = document.quote(told.line)
    phase = Fact(key="run.phase", value=told.phase, quotes=(quote,))
    if told.phase == "save":
        return [phase, Fact(key="run.epoch_boundary", value=True, quotes=(quote,))]
    return [phase]


def _index_of(document: Document, failure: Failure, numbers: list[int]) -> int:
    """Find the line of a failure; one physical line may have become several."""
    start = bisect_left(numbers, failure.order)
    first = min(start, len(numbers) - 1)
    for index in range(first, len(numbers)):
        line = document.lines[index]
        if line.number != failure.order:
            break
        same_rank = failure.rank is None or line.rank == failure.rank
        if same_rank and failure.line_quote.text in line.text:
            return index
    return first
