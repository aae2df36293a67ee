"""Match the failed request against products of the job's dimensions.

Two decimals of GiB are +-5 MiB and the allocator rounds on top, so with many dimensions a match by
chance is common: every match carries a weight of 1 / (1 + matches to expect by chance), times what
the failing frame says. Sizes are taken as log-uniform between 1 MiB and 64 GiB.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from oomdoctor.memory.candidates import (
    TEMPLATES,
    Candidate,
    Dimensions,
    Template,
    candidates,
    dimensions,
    element_word,
    product,
)
from oomdoctor.memory.frames import factor, heads_output, hint
from oomdoctor.memory.rounding import CACHING, Interval, tensors
from oomdoctor.model.plan import Fingerprint, FingerprintMatch
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.facts.book import FactBook

SPAN = log(64 * 1024)
FLOOR = 512
FULL_PRECISION = 4
SOLVED = 0.6
SOLVED_OTHER = 0.4
LISTED = 24
ROWS_MULTIPLE = 64
MAX_ROWS = 1 << 20
SOLVABLE_WIDTH = 64


class _Match(NamedTuple):
    """A match before it is weighed; `chance` is its own, beyond the common one."""

    candidate: Candidate
    assumed: tuple[str, ...]
    chance: float = 0.0


class _Frame(NamedTuple):
    """What the failing frame says: kind of work, whether it is the head, the 16-bit dtype."""

    name: str | None
    head: bool | None
    dtype: str | None


class Detail(NamedTuple):
    """A match together with its family and element size, which the facts are made of."""

    family: str
    element: int
    match: FingerprintMatch


def fingerprint(book: FactBook) -> Fingerprint:
    """Return all near matches of the failed request, best first."""
    details, tried, expected = matches(book)
    listed = tuple(detail.match for detail in details[:LISTED])
    return Fingerprint(matches=listed, tried=tried, expected_by_chance=expected)


def matches(book: FactBook) -> tuple[tuple[Detail, ...], int, float]:
    """Return the matches with their families, how many were tried, how many chance would give."""
    intervals = request_intervals(book)
    if not intervals:
        return (), 0, 0.0
    known = dimensions(book)
    stated = tuple(candidates(known))
    found = [
        _Match(candidate, tuple(sorted(known.assumed & candidate.values.keys())))
        for candidate in stated
        if any(interval.holds(candidate.bytes) for interval in intervals)
    ]
    found += _loose(known, intervals)
    attempts = tuple(_attempts(known, intervals, found))
    solved = [match for match in attempts if match is not None]
    by_size = len(stated) * _log_width(intervals) / SPAN
    by_size += sum(log(high / low) / SPAN for low, high in known.loose.values())
    expected = by_size + sum(match.chance for match in solved)
    frame = _Frame(hint(book), heads_output(book), _dtype(book))
    weighed = [_weigh(match, by_size, frame) for match in found]
    weighed += [_weigh(match, expected, frame) for match in solved]
    weighed.sort(
        key=lambda detail: (-detail.match.weight, -detail.element, detail.match.expression)
    )
    return tuple(weighed), len(stated) + len(attempts), round(expected, 4)


def request_intervals(book: FactBook) -> tuple[Interval, ...]:
    """Return the tensor sizes that may stand behind the printed request."""
    request = book.get("oom.requested")
    if request is None or isinstance(request.value, (bool, str)) or request.value < 1:
        return ()
    if book.value("oom.absurd_size"):
        return ()
    return tensors(
        int(request.value),
        slack=request.slack,
        expandable=book.value("alloc.expandable_segments") is True,
        caching=(book.value("oom.backend") or "cuda") in CACHING,
    )


def _log_width(intervals: tuple[Interval, ...]) -> float:
    """Return the share of the sizes that would match, as a width on the log scale."""
    return sum(log(max(FLOOR, i.high) / max(FLOOR, i.low)) for i in intervals)


def _dtype(book: FactBook) -> str | None:
    """Return the 16-bit dtype that the job computes in."""
    for key in ("train.amp", "train.param_dtype", "train.base_dtype", "model.dtype"):
        value = book.value(key)
        if value in ("bf16", "fp16"):
            return str(value)
    return None


def _attempts(
    known: Dimensions, intervals: tuple[Interval, ...], found: list[_Match]
) -> Iterator[_Match | None]:
    """Yield row counts that would explain the request where batch or tokens are not stated.

    None stands for an equation without a plausible solution. Rows below the stated limit are tried
    for the logits alone: padding to the longest row of a batch makes them common.
    """
    stated = {"batch", "seq"} <= known.sizes.keys()
    matched = {match.candidate.template.family for match in found}
    for template in TEMPLATES:
        if not template.per_row or (stated and (template.family != "logits" or matched)):
            continue
        rest = tuple(name for name in template.factors if name not in ("batch", "seq"))
        size = product(rest, known)
        if size is None:
            continue
        for element in template.elements:
            for interval in intervals:
                yield _solve(template, rest, size, element, interval, known)


def _loose(known: Dimensions, intervals: tuple[Interval, ...]) -> Iterator[_Match]:
    """Yield a full-precision partition whose size the model's name gives within some per cent."""
    for template in TEMPLATES:
        for name, (low, high) in known.loose.items():
            if template.factors != (name,) or FULL_PRECISION not in template.elements:
                continue
            for one in intervals:
                least = max(one.low, low * FULL_PRECISION)
                if least <= min(one.high, high * FULL_PRECISION):
                    values = {name: least // FULL_PRECISION}
                    text = f"{name}*{FULL_PRECISION}"
                    tensor = Candidate(least, FULL_PRECISION, template, text, values)
                    yield _Match(tensor, (name,))
                    break


def _solve(
    template: Template,
    rest: tuple[str, ...],
    size: int,
    element: int,
    interval: Interval,
    known: Dimensions,
) -> _Match | None:
    """Return the roundest number of rows within the interval, None where none is plausible."""
    unit = size * element
    low, high = -(-interval.low // unit), interval.high // unit
    width = (interval.high - interval.low) / unit
    if low < 1 or high < low or high > MAX_ROWS or width > SOLVABLE_WIDTH:
        return None
    rows, step = _roundest(low, high, known)
    longest = known.sizes.get("max_positions", 0)
    if step < ROWS_MULTIPLE and rows > longest:
        return None
    limit = {"batch", "seq"} <= known.sizes.keys()
    if limit and rows > known.sizes["batch"] * known.sizes["seq"]:
        return None
    names = ("rows", *rest, str(element))
    values = {"rows": rows} | {n: known.sizes[n] for n in rest if not n.isdecimal()}
    assumed = ("rows", *sorted(known.assumed & values.keys()))
    candidate = Candidate(rows * unit, element, template, "*".join(names), values)
    chance = width / (step if step >= ROWS_MULTIPLE or step == known.sizes.get("seq") else 1)
    return _Match(candidate, assumed, chance)


def _roundest(low: int, high: int, known: Dimensions) -> tuple[int, int]:
    """Return (rows, step): a multiple of the stated tokens, else of the largest power of two."""
    tokens = known.sizes.get("seq")
    if tokens is not None and high // tokens * tokens >= low:
        return high // tokens * tokens, tokens
    step = 1 << high.bit_length()
    while high // step * step < low:
        step //= 2
    return high // step * step, step


def _weigh(match: _Match, expected: float, frame: _Frame) -> Detail:
    """Weigh a match by chance, by what it assumes, and by the failing frame."""
    candidate = match.candidate
    family = candidate.template.family
    weight = factor(frame.name, family, candidate.element, head=frame.head) / (1 + expected)
    if match.assumed:
        weight *= SOLVED if family == "logits" or not match.chance else SOLVED_OTHER
    meaning = _meaning(candidate, frame)
    if family == "weight" and frame.name == "optimizer":
        family, meaning = "optimizer", f"optimizer state of: {meaning}"
    return Detail(
        family,
        candidate.element,
        FingerprintMatch(
            bytes=candidate.bytes,
            expression=candidate.expression,
            meaning=meaning,
            values=candidate.values,
            weight=round(weight, 4),
            assumed=match.assumed,
        ),
    )


def _meaning(candidate: Candidate, frame: _Frame) -> str:
    """Name the tensor in words; a projection that makes logits is the head's output."""
    word = element_word(candidate.element, frame.dtype)
    what = candidate.template.meaning
    if candidate.template.family == "logits" and (
        frame.name == "linear" or (frame.name != "loss" and candidate.element != FULL_PRECISION)
    ):
        what = "lm_head output"
    rows = candidate.values.get("rows")
    return f"{word} {what}" if rows is None else f"{word} {what} of {rows:,} rows"
