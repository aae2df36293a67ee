"""One-line texts of exhausted memory that a terminal or a log collector cut into several lines.

    ValueError: No available memory for the
    cache blocks. Try increasing `gpu_memory_utilization`

Read in the text without white space, with the same table as `torch_oom`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.evidence import pool_oom, wrapped
from oomdoctor.evidence.events import line_quote
from oomdoctor.evidence.signs import failure_of
from oomdoctor.evidence.torch_oom import SIGNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.evidence.signs import Sign
    from oomdoctor.model.core import Document, Failure

AFTER = 2
"""A bare word of the same message may stand so many lines behind its beginning."""
MOST_SPANNED = 8
"""No terminal cuts a sentence into more lines; what spans more are words of many lines."""


def joined(document: Document, failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """Return the failures with those of cut messages, which stand for what their lines told."""
    found = [_failure(document, sign, one) for sign, one in _found(document)]
    if not found:
        return tuple(failures)
    kept = [one for one in failures if not any(_within(one, cut, last) for cut, last in found)]
    told = [cut for cut, last in found if not any(_tells(one, cut, last) for one in kept)]
    return tuple(sorted([*kept, *told], key=lambda failure: failure.order))


def _found(document: Document) -> Iterator[tuple[Sign, wrapped.Found]]:
    """Yield the first sign of each place that only the joined text shows."""
    places: set[tuple[int, int]] = set()
    for sign in SIGNS:
        if "^" in sign.pattern or not sign.pattern:
            continue
        for literal in sign.literals:
            one = wrapped.last(document, literal, sign.pattern)
            if one is None or not one.crosses():
                continue
            first, end = one.match.span()
            place = (one.run.index_at(first), one.run.index_at(end - 1))
            if place[1] - place[0] >= MOST_SPANNED:
                continue
            if not any(a <= place[1] and place[0] <= b for a, b in places):
                places.add(place)
                if sign.family != pool_oom.WARNING:
                    yield sign, one
            break


def _failure(document: Document, sign: Sign, one: wrapped.Found) -> tuple[Failure, int]:
    """Make the failure of a cut message; with the number of its last line."""
    start, end = one.match.span()
    first, last = one.run.line_at(start), one.run.line_at(end - 1)
    failure = failure_of(
        sign,
        first,
        one.match,
        place=line_quote(document, first, column=one.run.column_at(start)),
        phrase=one.quotes(),
        quoted=one.run.quotes,
    )
    return failure, last.number


def _within(failure: Failure, cut: Failure, last: int) -> bool:
    """Say whether a failure of one line is a piece of the cut message, and tells less."""
    inside = cut.order <= failure.order <= last + AFTER
    more = _sized(failure) and not _sized(cut)
    return inside and failure.kind == cut.kind and not more


def _sized(failure: Failure) -> bool:
    return any(one.key == "oom.requested" for one in failure.facts)


def _tells(failure: Failure, cut: Failure, last: int) -> bool:
    return failure.kind == cut.kind and cut.order <= failure.order <= last + AFTER
