"""XLA's account of a compiled program that did not fit: its parts, and its largest buffers.

BufferAssignment stats:
             parameter allocation:  372.76MiB
              constant allocation:    48.5KiB
        maybe_live_out allocation:    9.64GiB
     preallocated temp allocation:    4.44GiB
  preallocated temp fragmentation:  304.00MiB (6.69%)        (newer)
                 total allocation:   14.44GiB
              total fragmentation:  680.30MiB (4.60%)
Peak buffers:
        Buffer 1:
                Size: 4.00GiB
                Operator: op_name="jit(train_step)/.../dot_general[...]" source_file="model.py"
                Entry Parameter Subshape: f32[50257,768]      (instead of Operator)
                XLA Label: fusion
                Shape: f32[8,16,4096,4096]
                ==========================
Program hbm requirement 21.90G:                               (TPU)
  Largest program allocations in hbm:         (below: HBM capacity 8.00G: and the like)
  1. Size: 2.00G
     Operator: op_name="..."
     Shape: f32[32,4096,4096]{2,1,0:T(8,128)}
Can't reduce memory use below 14.91GiB (16014377411 bytes) by rematerialization; only reduced to
    31.20GiB (33500744909 bytes), down from 40.02GiB (42971147264 bytes) originally
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import stated
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.facts.derive_pools import LEAST_TOKENS, LEAST_VOCABULARY, MOST_VOCABULARY
from oomdoctor.model.core import Reading
from oomdoctor.record import NamedTuple
from oomdoctor.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.model.core import Document, Fact, LogLine, Quote

ANCHORS = (
    "allocation:",
    "peak buffers:",
    "allocations in hbm",
    "entry parameter subshape",
    "hbm capacity",
    "by rematerialization",
)
LONGEST = 4000
MOST_BUFFERS = 64
AFTER_SIZE = 10
OPERATOR_CHARS = 160
ARGUMENT = "argument"
_LITERALS = (
    " allocation: ",
    " fragmentation: ",
    "size: ",
    "operator: ",
    "shape: ",
    "hbm requirement",
    "hbm capacity",
    "currently allocated:",
    "xla label: parameter",
    "by rematerialization",
)
_PARTS = {
    "parameter": "xla.parameters",
    "constant": "xla.constants",
    "maybe_live_out": "xla.outputs",
    "preallocated temp": "xla.temp",
    "total": "xla.total",
}


class _Buffer(NamedTuple):
    """One buffer of the list: its bytes, what made it, its dimensions, and where that stands."""

    size: int
    operator: str
    shape: str
    quote: Quote

    @property
    def dims(self) -> tuple[int, ...]:
        """Return the dimensions of `f32[8,16,4096,4096]`."""
        inside = self.shape.partition("[")[2].partition("]")[0]
        return tuple(int(one) for one in inside.split(",") if one.strip().isdecimal())

    @property
    def has_tokens(self) -> bool:
        """Say whether the last two dimensions are as many tokens each."""
        dims = self.dims
        return len(dims) >= 3 and dims[-1] == dims[-2] >= LEAST_TOKENS

    @property
    def has_pairs(self) -> bool:
        """Say whether it holds a vector for each pair of tokens: two equal dimensions first."""
        dims = self.dims
        return len(dims) >= 3 and dims[0] == dims[1] >= LEAST_TOKENS


@cache
def _part() -> re.Pattern[str]:
    return re.compile(
        r"(?P<part>parameter|constant|maybe_live_out|preallocated temp|total) "
        r"(?P<what>allocation|fragmentation):\s+(?P<size>\d[\d.]*\s?[KMGT]?i?B?)"
        r"(?: \((?P<share>\d+(?:\.\d+)?)%\))?(?!\S)"
    )


@cache
def _size() -> re.Pattern[str]:
    return re.compile(r"^\s*(?:\d+\. )?Size: (\d[\d.]*[KMGT]?i?B?)\s*$")


@cache
def _operator() -> re.Pattern[str]:
    return re.compile(r"op_name=\"(?P<name>[^\"]*)")


@cache
def _shape() -> re.Pattern[str]:
    return re.compile(r"(?P<entry>Entry Parameter Subs|S)hape: (?P<shape>\w+\[[\d,]*\])")


@cache
def _capacity() -> re.Pattern[str]:
    return re.compile(
        r"HBM capacity (?P<total>\d[\d.]*[KMG])\b"
        r"|Currently allocated:\s+(?P<used>\d[\d.]*[KMG])\b"
    )


@cache
def _rematerialized() -> re.Pattern[str]:
    size = r"\d[\d.]*[KMGT]?i?B(?: \((?P<{0}>\d+) bytes\))"
    return re.compile(
        rf"memory use below {size.format('limit')} by rematerialization;"
        rf" only reduced to {size.format('needed')}"
    )


@cache
def _scores_operator() -> re.Pattern[str]:
    return re.compile(
        r"(?i)atten|softmax|bhqk|hqk\b|bqhd|bhtT|bhij|dot_product|msa_row|triangle|scores"
    )


def read(document: Document) -> Reading:
    """Return the parts of the program and what its largest buffers are."""
    indexes = haystack_of(document).lines_with(_LITERALS)
    lines = [(at, document.lines[at]) for at in indexes]
    lines = [(at, line) for at, line in lines if len(line.text) <= LONGEST]
    facts: dict[str, Fact] = {}
    for _, line in lines:
        for one in (*_part_facts(document, line), *_capacity_facts(document, line)):
            facts.setdefault(one.key, one)
    facts.update(_largest_need(document, lines))
    buffers = list(_buffers(document, lines))[:MOST_BUFFERS]
    return Reading(facts=(*facts.values(), *_buffer_facts(buffers)))


def _capacity_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    """Yield a TPU's capacity and what it held, from the account of a refused program."""
    for found in _capacity().finditer(line.text):
        for name, key in (("total", "gpu.total"), ("used", "gpu.used")):
            size = _bytes(found[name]) if found[name] else None
            if size is not None:
                yield stated(key, size[0], document.quote(line, *found.span()), slack=size[1])


def _largest_need(document: Document, lines: Sequence[tuple[int, LogLine]]) -> dict[str, Fact]:
    """Return limit and need of the program that rematerialization left the furthest above."""
    told: list[tuple[int, int, Quote]] = []
    for _, line in lines:
        found = _rematerialized().search(line.text)
        if found is not None:
            quote = document.quote(line, *found.span())
            told.append((int(found["needed"]), int(found["limit"]), quote))
    if not told:
        return {}
    needed, limit, quote = max(told, key=lambda one: one[0] - one[1])
    return {
        "xla.needed": stated("xla.needed", needed, quote),
        "xla.limit": stated("xla.limit", limit, quote),
    }


def _part_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    found = _part().search(line.text)
    size = None if found is None else _bytes(found["size"])
    if found is None or size is None:
        return
    quote = document.quote(line, *found.span())
    if found["what"] == "allocation":
        yield stated(_PARTS[found["part"]], size[0], quote, slack=size[1])
    elif found["part"] == "total":
        yield stated("xla.fragmentation", size[0], quote, slack=size[1])
        if found["share"]:
            share = round(float(found["share"]) / 100, 6)
            yield stated("xla.fragmentation_share", share, quote, slack=0.00005)


def _bytes(text: str) -> tuple[int, float] | None:
    """Parse `4.44GiB`, `0B` and the TPU compiler's `2.00G`."""
    size = parse_size(f"{text} B" if text.isdecimal() else text)
    return None if size is None else (size.bytes, size.slack_bytes)


def _buffers(document: Document, lines: Sequence[tuple[int, LogLine]]) -> Iterator[_Buffer]:
    """Yield the buffers of the list: a size, and the operator and shape in the lines below it."""
    for place, (at, line) in enumerate(lines):
        found = _size().match(line.text)
        size = None if found is None else _bytes(found[1])
        if size is None:
            continue
        operator, shape = "", ""
        for below, other in lines[place + 1 : place + 1 + AFTER_SIZE]:
            if below - at > AFTER_SIZE or _size().match(other.text):
                break
            made = _operator().search(other.text)
            formed = _shape().search(other.text)
            operator = operator or (made["name"][:OPERATOR_CHARS] if made else "")
            if formed is not None and not shape:
                shape = formed["shape"]
                operator = operator or (ARGUMENT if formed["entry"] != "S" else "")
            elif not operator and "XLA Label: parameter" in other.text:
                operator = ARGUMENT
        if shape:
            yield _Buffer(size[0], operator, shape, document.quote(line))


def _buffer_facts(buffers: Sequence[_Buffer]) -> Iterator[Fact]:
    if not buffers:
        return
    quotes = [one.quote for one in buffers]
    text = "\n".join(f"{one.size} | {one.operator} | {one.shape}" for one in buffers)
    yield stated("xla.buffers", text, *quotes)
    largest = max(buffers, key=lambda one: one.size)
    yield stated("xla.largest_buffer", largest.size, largest.quote)
    whole = sum(one.size for one in buffers)
    if whole <= 0:
        return
    named = frozenset(one.shape for one in buffers if _makes_scores(one))
    for key, chosen in (
        ("xla.scores_share", [one for one in buffers if one.shape in named and one.has_tokens]),
        ("xla.pair_share", [one for one in buffers if one.has_pairs]),
        ("xla.vocab_share", [one for one in buffers if _is_logits(one)]),
        ("xla.entry_share", [one for one in buffers if one.operator == ARGUMENT]),
    ):
        share = round(sum(one.size for one in chosen) / whole, 4)
        yield stated(key, share, *[one.quote for one in chosen or buffers[:1]])


def _makes_scores(buffer: _Buffer) -> bool:
    """Say whether an attention operator made the buffer: square images have such shapes too."""
    return _scores_operator().search(buffer.operator) is not None


def _is_logits(buffer: _Buffer) -> bool:
    """Say whether a buffer's last dimension is a vocabulary, and it is no weight."""
    dims = buffer.dims
    if len(dims) < 2 or buffer.operator == ARGUMENT:
        return False
    return LEAST_VOCABULARY <= dims[-1] <= MOST_VOCABULARY and (
        len(dims) > 2 or dims[0] * 4 < dims[-1] or "logit" in buffer.operator.lower()
    )
