"""Sizes that depend on the data, as programs print them: rows, tokens, dictionaries.

input_ids.shape torch.Size([4, 8192])              4 rows of 8192 tokens
Token indices sequence length is longer than the specified maximum sequence length for this
    model (9471 > 2048). Running this sequence through the model will result in errors
longest sequence in the data set: 9471 tokens
| [en] dictionary: 922896 types                     the target's dictionary stands last
 > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import stated
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.moment import failure_index
from oomdoctor.model.core import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine

ANCHORS = (
    "input_ids",
    "attention_mask",
    "position_ids",
    "tokens",
    "maximum sequence length",
    "longest",
    "dictionary",
    "vocab",
)
LONGEST = 1000
MOST_TOKENS = 1 << 28
_NAMED = "input_ids|attention_mask|position_ids|(?:input_|batch_)?tokens"


@cache
def _shape() -> re.Pattern[str]:
    return re.compile(
        rf"(?<![A-Za-z])(?:{_NAMED})(?:['\"\]]|\.(?:shape|size\(\))|[ _]?shape){{0,3}}\s*[:=]?\s*"
        r"(?:shape\s*[:=]?\s*)?(?:torch\.Size\(\[(?P<sizes>[\d, ]{1,40})\]\)"
        r"|\((?P<tuple>\d{1,6}, ?\d{1,7})\))"
    )


@cache
def _too_long() -> re.Pattern[str]:
    return re.compile(
        r"sequence length is longer than the specified maximum sequence length for this model"
        r" \((?P<tokens>\d{1,9}) > (?P<limit>\d{1,9})\)"
    )


@cache
def _longest() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:longest|max(?:imum)?) (?:sequence|sample|row|example|prompt|input|document)s?"
        r"(?: length)?(?: (?:in|of) [\w ]{1,30})?\s*(?:[:=]|is|has)\s*(?P<tokens>\d[\d,]{0,10})"
        r"(?: tokens)?(?![\w.%])",
        re.IGNORECASE,
    )


@cache
def _vocabulary() -> re.Pattern[str]:
    return re.compile(
        r"(?:\bdictionary: (?P<types>\d{2,10}) types|padded vocab \(size: \d+\).{0,60}"
        r"new size: (?P<padded>\d{2,10})\)|\b(?:n_vocab|vocab(?:ulary)?[_ ]size)[\"']?\s*[:=]\s*"
        r"(?P<size>\d[\d,]{1,12}))(?![\w.])"
    )


def read(document: Document) -> Reading:
    """Return the last sizes before the failure, and the longest row of all."""
    failure = failure_index(document)
    end = len(document.lines) if failure is None else failure + 1
    found: dict[str, Fact] = {}
    for index in haystack_of(document).lines_with(ANCHORS):
        if index >= end:
            break
        for fact in _facts_of(document, document.lines[index]):
            held = found.get(fact.key) if fact.key == "train.longest_row" else None
            if held is None or int(held.value) < int(fact.value):
                found[fact.key] = fact
    return Reading(facts=tuple(found.values()))


def _facts_of(document: Document, line: LogLine) -> Iterator[Fact]:
    text = line.text[:LONGEST]
    shape = _shape().search(text)
    if shape is not None and (shape["sizes"] or "shape" in shape.group()):
        sizes = [
            int(part) for part in (shape["sizes"] or shape["tuple"]).split(",") if part.strip()
        ]
        quote = document.quote(line, *shape.span())
        rows, tokens = ([1, *sizes] if len(sizes) == 1 else sizes)[:2]
        if len(sizes) <= 2 and 0 < rows * tokens < MOST_TOKENS:
            yield stated("data.tokens_seen", rows * tokens, quote)
            yield stated("train.longest_row", tokens, quote)
    for pattern in (_too_long(), _longest()):
        told = pattern.search(text)
        if told is not None:
            tokens = int(told["tokens"].replace(",", ""))
            yield stated("train.longest_row", tokens, document.quote(line, *told.span()))
            break
    words = _vocabulary().search(text)
    if words is not None:
        digits = (words["types"] or words["padded"] or words["size"]).replace(",", "")
        yield stated("model.vocab", int(digits), document.quote(line, *words.span()))
