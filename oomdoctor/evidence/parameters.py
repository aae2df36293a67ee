"""Parameters as training programs print them, of the whole model or of one rank's share.

trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622        (peft)
Number of trainable parameters = 1,235,814,400                                        (HF)
Total parameters: 355,469,312 (355,469,312 trainable)                                 (ParlAI)
num. model params: 355,469,312 (num. trained: 355,469,312)                            (fairseq)
Trainable parameters = 41,943,040 of 7,657,558,016 (0.55% trained)                  (Unsloth)
8.0 B     Total params                                                             (Lightning)
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import stated
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.model.core import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine

ANCHORS = ("params", "parameters")
LONGEST = 400
FEWEST, MOST = 100_000, 10**13
_SCALES = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


@cache
def _both() -> re.Pattern[str]:
    number = r"\d{1,3}(?:,\d{3})+|\d{4,14}"
    return re.compile(
        rf"trainable params: (?P<t1>{number}) \|\| all params: (?P<a1>{number})"
        rf"|[Tt]otal (?:number of )?param(?:eter)?s: (?P<a2>{number}) \((?P<t2>{number}) trainable"
        rf"|num\. (?:shared )?model params: (?P<a3>{number}) \(num\. trained: (?P<t3>{number})\)"
        rf"|\bTrainable parameters = (?P<t5>{number}) ?(?:of|/) ?(?P<a5>{number})(?![\d,.])"
        rf"|Number of trainable parameters\s*[=:]\s*(?P<t4>{number})(?![\d,.])"
        rf"|[Tt]otal (?:number of )?param(?:eter)?s\s*[:=]\s*(?P<a4>{number})(?![\d,.])"
    )


@cache
def _summary() -> re.Pattern[str]:
    return re.compile(
        r"^\s*(?P<number>\d{1,4}(?:\.\d)?)\s{1,2}(?P<scale>[KMBT])\s{2,}"
        r"(?P<what>Trainable|Total) params\b"
    )


def read(document: Document) -> Reading:
    """Return the last printed numbers of all and of trained parameters."""
    found: dict[str, Fact] = {}
    for index in haystack_of(document).lines_with(ANCHORS):
        found |= {fact.key: fact for fact in _facts_of(document, document.lines[index])}
    return Reading(facts=tuple(found.values()))


def _facts_of(document: Document, line: LogLine) -> Iterator[Fact]:
    text = line.text[:LONGEST]
    told = _both().search(text)
    if told is not None:
        quote = document.quote(line, *told.span())
        for mark, key in (("a", "model.params_printed"), ("t", "train.params_printed")):
            digits = next((told[f"{mark}{n}"] for n in "12345" if told[f"{mark}{n}"]), None)
            number = int(digits.replace(",", "")) if digits else 0
            if FEWEST <= number <= MOST:
                yield stated(key, number, quote)
        return
    told = _summary().match(text)
    if told is not None:
        scale = _SCALES[told["scale"]]
        number, slack = int(float(told["number"]) * scale), 0.05 * scale
        key = "model.params_printed" if told["what"] == "Total" else "train.params_printed"
        if FEWEST <= number <= MOST:
            yield stated(key, number, document.quote(line, *told.span()), slack=slack)
