"""Table-driven recognition of one-line texts: a literal, a pattern, and what it stands for."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.events import QUOTE_CHARS, Event, absurd_fact, fact, line_quote, part_quote
from oomdoctor.evidence.frames import frame_head
from oomdoctor.model.core import Failure
from oomdoctor.record import NamedTuple, replace
from oomdoctor.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from oomdoctor.evidence.haystack import Haystack
    from oomdoctor.model.core import Document, Fact, LogLine, Quote, Value

SIZED = r"\d[\d,]*(?:\.\d+)?\s*(?:[KMGTPE]i?B|bytes|B)\b"
LEAD, TRAIL = 400, 2_000
"""A pattern is tried on this many characters before and behind the literal that it holds."""

# a tag of the rank may stand before it where only a part of the lines has one
_CODE = (
    r"\s*(?:\[?(?:rank)?\d{1,4}\]?:\s{1,8})?"
    r"(?:raise|except|if|elif|assert|return|print|warnings\.warn|#|//)\b"
)
_RAISE = r"\s*raise \w[\w.]*\(\s*f?[\x22\x27]"
_KEYS = {
    "requested": "oom.requested",
    "capacity": "oom.capacity",
    "free": "oom.free",
    "allowed": "oom.allowed",
    "allocated": "torch.allocated",
    "host": "host.requested",
    "wanted": "fault.kernel_required",
    "limit": "fault.kernel_limit",
    "needed": "xla.hbm_used",
}
_ITEM_BYTES = {
    **dict.fromkeys(("float", "float32", "int32", "uint32", "DT_FLOAT"), 4),
    **dict.fromkeys(("double", "float64", "int64", "uint64", "complex64"), 8),
    **dict.fromkeys(("half", "float16", "bfloat16", "int16", "uint16"), 2),
    **dict.fromkeys(("bool", "int8", "uint8", "qint8", "quint8"), 1),
    "complex128": 16,
}


class Sign(NamedTuple):
    """A text to know: `literals` (lower case) are the cheap test, `pattern` decides.

    Named groups of the pattern hold sizes (bare digits are bytes; `exact` outranks `requested`, a
    digit at the end of a name is ignored), a tensor's `shape` and `dtype`, or the device `index`;
    `states` are the facts that the text itself stands for. `family` and `reach` fold neighbours
    into one event. An empty pattern takes every line with a literal.
    """

    literals: tuple[str, ...]
    pattern: str
    kind: str
    states: tuple[tuple[str, Value], ...] = ()
    family: str = ""
    reach: int = 12
    consequence: bool = False


def gpu(
    literals: tuple[str, ...],
    pattern: str,
    backend: str,
    form: str,
    *,
    family: str = "",
    library: str = "",
) -> Sign:
    """Return the sign of exhausted accelerator memory, in the words of a `library` if named."""
    states: tuple[tuple[str, Value], ...]
    states = (("oom.seen", True), ("oom.backend", backend), ("oom.form", form))
    if library:
        states = (*states, ("oom.library", library))
    return Sign(literals, pattern, "gpu-oom", states, family)


class Hit(NamedTuple):
    """A sign that was found: the index of the line and the match."""

    at: int
    sign: Sign
    match: re.Match[str]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def hits(
    haystack: Haystack, signs: Sequence[Sign], *, taken: frozenset[int] = frozenset()
) -> Iterator[Hit]:
    """Yield the first sign that fits each line, in order; lines in `taken` are spoken for."""
    present = [sign for sign in signs if any(haystack.has(one) for one in sign.literals)]
    if not present:
        return
    literals = {one for sign in present for one in sign.literals}
    for index in haystack.telling(literals):
        if index in taken:
            continue
        hit = _first(haystack, index, present)
        if hit:
            yield hit


def _first(haystack: Haystack, index: int, signs: Sequence[Sign]) -> Hit | None:
    lowered = haystack.lowered(index)
    text = haystack.document.lines[index].text
    for sign in signs:
        at = min((lowered.find(one) for one in sign.literals if one in lowered), default=-1)
        if at >= 0:
            found = _compiled(sign.pattern).search(text, max(0, at - LEAD), at + TRAIL)
            if found:
                return None if _compiled(_CODE).match(text) else Hit(index, sign, found)
    return None


def raised(haystack: Haystack, signs: Sequence[Sign]) -> Iterator[Hit]:
    """Yield the last `raise` of a traceback that was cut before the message that it raises."""
    lines = haystack.document.lines
    present = [sign for sign in signs if any(haystack.has(one) for one in sign.literals)]
    literals = {one for sign in present for one in sign.literals}
    for index in sorted(haystack.telling(literals), reverse=True) if literals else ():
        text = lines[index].text
        if not index or not _compiled(_RAISE).match(text):
            continue
        if frame_head(lines[index - 1].text) is None:
            continue
        for sign in present:
            found = _compiled(sign.pattern).search(text[:TRAIL])
            if found:
                yield Hit(index, sign, found)
                return


def event_of(document: Document, hit: Hit, *, extra: Sequence[Fact] = ()) -> Event:
    """Turn a hit into an event with the facts that its sign states and its groups show."""
    line = document.lines[hit.at]
    start, end = hit.match.span()
    phrase = part_quote(document, line, start, min(max(end, start + 1), start + QUOTE_CHARS))
    failure = failure_of(
        hit.sign,
        line,
        hit.match,
        place=line_quote(document, line, column=start),
        phrase=(phrase,),
        quoted=lambda first, last: (part_quote(document, line, first, last),),
    )
    failure = replace(failure, facts=(*failure.facts, *extra))
    return Event(failure, hit.at, hit.at, hit.sign.family, hit.sign.reach)


def failure_of(
    sign: Sign,
    line: LogLine,
    match: re.Match[str],
    *,
    place: Quote,
    phrase: Sequence[Quote],
    quoted: Callable[[int, int], Sequence[Quote]],
) -> Failure:
    """Return the failure of a sign that begins on `line`; `quoted` quotes a span of the match."""
    figures = tuple(_figures(match, quoted))
    stated = tuple(fact(key, value, phrase) for key, value in sign.states)
    given: tuple[Fact, ...] = ()
    if sign.kind == "gpu-oom":
        has_size = any(one.key == "oom.requested" for one in figures)
        given = (fact("oom.figures_given", has_size, phrase),)
    return Failure(
        kind=sign.kind,
        order=line.number,
        line_quote=place,
        facts=(*stated, *given, *figures, *absurd_fact(figures)),
        rank=line.rank,
        stamp=line.stamp,
        consequence=sign.consequence,
    )


def _figures(match: re.Match[str], quoted: Callable[[int, int], Sequence[Quote]]) -> Iterator[Fact]:
    groups = {name: text for name, text in match.groupdict().items() if text}
    if "exact" in groups:
        groups.pop("requested", None)
    if "shape" in groups:
        yield from _tensor(match, quoted)
    for name, text in groups.items():
        figure = _figure_of(name, text, quoted(*match.span(name)))
        if figure is not None:
            yield figure


def _figure_of(name: str, text: str, quotes: Sequence[Quote]) -> Fact | None:
    """Return the fact that a named group of a sign's pattern states, if it is a figure."""
    if name == "index":
        return fact("oom.gpu_index", int(text), quotes)
    size = parse_size(f"{text} B" if text.replace(",", "").isdecimal() else text)
    key = _KEYS.get("requested" if name == "exact" else name.rstrip("2"))
    if size is None or key is None:
        return None
    return fact(key, size.bytes, quotes, slack=size.slack_bytes)


def _tensor(match: re.Match[str], quoted: Callable[[int, int], Sequence[Quote]]) -> Iterator[Fact]:
    """Yield a tensor's shape, and its bytes where its type is told."""
    dims = [int(one) for one in match["shape"].split(",") if one]
    quotes = quoted(match.start("shape"), match.end("dtype" if match["dtype"] else "shape"))
    if not dims:
        return
    yield fact("oom.tensor_shape", "x".join(map(str, dims)), quotes)
    width = _ITEM_BYTES.get(match["dtype"] or "")
    if width is not None:
        yield fact("oom.requested", width * math.prod(dims), quotes)
