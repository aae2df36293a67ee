"""Phrases that the text page and the Markdown page share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import change
from oomdoctor.model.enums import Truth
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.model.core import Fact, Finding, Quote
    from oomdoctor.model.plan import (
        Diagnosis,
        LedgerEntry,
        Patch,
        Prescription,
        RankSummary,
        Saving,
    )

DIGITS = 4
# Odds times 1.3: weaker lines count, but telling them would bury the strong ones.
TELLING_NATS = 0.25
NANO = 1e-9
_SHELL = ("env", "cli", "vllm", "sglang")

ANSWERS = {
    "cause": ("bad", "cause found"),
    "need_evidence": ("open", "more evidence needed"),
    "not_gpu_oom": ("aside", "not a GPU out-of-memory"),
    "nothing_found": ("none", "nothing recognised"),
}
RESOURCES = {
    "gpu": "GPU memory ran out",
    "cap": "a cap on memory was reached",
    "host": "host memory ran out",
    "not_memory": "no memory ran out",
}
OWNERS = {
    "reserved_unallocated": "reserved but unallocated (the cache)",
    "outside_allocator": "this process outside the allocator",
}
SAFETY = {
    "safe": "changes nothing else",
    "changes-speed": "changes speed",
    "changes-math": "changes the mathematics",
    "needs-code": "needs a code change",
}


def shares(causes: Sequence[Finding]) -> tuple[tuple[float, ...], float]:
    """Round the probabilities so that they and the remainder add up to exactly one.

    The remainder is the probability of something else (and of causes that are not shown).
    """
    rounded = [round(min(max(one.probability, 0.0), 1.0), DIGITS) for one in causes]
    excess = round(sum(rounded) - 1.0, DIGITS)
    if excess > 0 and rounded:
        largest = rounded.index(max(rounded))
        rounded[largest] = round(max(rounded[largest] - excess, 0.0), DIGITS)
    return tuple(rounded), round(max(1.0 - sum(rounded), 0.0), DIGITS)


def percent(probability: float) -> str:
    """Print a probability as people read it: `83 %`, `< 1 %`, `> 99 %`."""
    if 0 < probability < 0.01 - NANO:
        return "< 1 %"
    if 0.99 + NANO < probability < 1:
        return "> 99 %"
    return f"{100 * probability:.0f} %"


def says(finding: Finding) -> str:
    """Return the verdict sentence of a finding."""
    return sentence(finding.says or finding.title)


def sentence(text: str) -> str:
    """Return `text` with a full stop, unless it ends in one already."""
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


def owner_words(owner: str) -> str:
    """Return the words for an owner of memory."""
    return OWNERS.get(owner, owner.replace("_", " "))


def reasons(finding: Finding) -> list[str]:
    """Return the counted evidence lines that speak for a finding: what is seen, then what is not.

    A line that is not so can speak for a cause, too: it would be seen more often without it.
    """
    speaking = [one for one in finding.weights if one.counted and one.nats >= TELLING_NATS]
    ordered = sorted(speaking, key=lambda one: (one.verdict.truth is not Truth.TRUE, -one.nats))
    return [
        one.label if one.verdict.truth is Truth.TRUE else f"ruled out: {one.label}"
        for one in ordered
    ]


def entry_source(entry: LedgerEntry) -> str:
    """Say who states the figure of a balance-sheet entry."""
    return f"{entry.origin.value}: {entry.source}" if entry.source else entry.origin.value


def saving_words(saving: Saving) -> str:
    """Print a saving as its likely value and, where they differ, its interval."""
    likely = format_size(saving.likely_bytes)
    if saving.low_bytes == saving.high_bytes:
        return f"saves {likely}"
    low, high = format_size(saving.low_bytes), format_size(saving.high_bytes)
    return f"saves about {likely} ({low} to {high})"


def price_words(one: Prescription) -> str:
    """Print what a fix costs in time and quality, and whether it is known to suffice."""
    speed = (
        "no slower"
        if abs(one.time_factor - 1.0) < NANO
        else f"step time x {one.time_factor:.2f}".rstrip("0").rstrip(".")
    )
    quality = "same result" if one.quality == "none" else f"result: {one.quality}"
    fits = {
        True: "fits afterwards, as estimated",
        False: "not enough on its own",
        None: "not proven to suffice",
    }[one.sufficient]
    return f"{speed}, {quality}, {fits}"


def answer_words(diagnosis: Diagnosis) -> tuple[str, list[str]]:
    """Return the role of an answer, and in words what it is and what ran out."""
    role, words = ANSWERS.get(diagnosis.answer, ("open", diagnosis.answer))
    return role, [words, *filter(None, [RESOURCES.get(diagnosis.resource)])]


def opening_quotes(diagnosis: Diagnosis) -> Sequence[Quote]:
    """Return the line of the failure, without one the signs of trouble."""
    event = diagnosis.event
    return [event.line_quote] if event is not None else diagnosis.signs[:3]


def patch_text(patch: Patch) -> tuple[str, str]:
    """Return a patch as it is copied, and its language: a diff word for word, or what is typed."""
    if patch.diff:
        return patch.diff.rstrip("\n"), "diff"
    language = "sh" if patch.dialect in _SHELL else "yaml"
    return "\n".join(settings_lines(patch)), language


def settings_lines(patch: Patch) -> list[str]:
    """Spell the settings of a patch without a file the way its dialect is typed."""
    if patch.dialect == "env":
        return [_variable(key, value) for key, value in patch.settings.items()]
    if patch.dialect in _SHELL:
        return [_flag(key, value) for key, value in patch.settings.items()]
    return [
        _order(key, value) or f"{key}: {_scalar(value)}" for key, value in patch.settings.items()
    ]


def _order(key: str, value: object) -> str | None:
    """Spell a key to take out or to rename as a comment; None for a value to set."""
    name = change.new_name(value)
    if change.removes(value):
        return f"# take out: {key}"
    return None if name is None else f"# rename: {key} -> {change.sibling(key, name)}"


def _variable(key: str, value: object) -> str:
    return f"unset {key}" if change.removes(value) else f"export {key}={value}"


def _flag(key: str, value: object) -> str:
    name = key if key.startswith("-") else "--" + key.replace("_", "-")
    order = _order(name, value)
    if order is not None:
        return order
    return name if value is True else f"{name} {_scalar(value)}"


def _scalar(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower() if value is not None else "null"
    return str(value)


def fact_words(fact: Fact, *, is_size: bool) -> str:
    """Print a fact's value for people."""
    value = fact.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_size and isinstance(value, (int, float)):
        return format_size(value)
    if isinstance(value, int):
        return format_count(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value)
    head, newline, _ = text.partition("\n")
    return f"{head} ... ({text.count(newline) + 1} lines)" if newline else text


def place(quote: Quote) -> str:
    """Name where a quote stands: `crash.log:42`."""
    return f"{quote.artifact}:{quote.line}"


def distinct(quotes: Sequence[Quote]) -> list[Quote]:
    """Return the quotes without those of a line that a longer one already shows, in order."""
    best: dict[tuple[str, int], Quote] = {}
    for quote in quotes:
        held = best.get((quote.artifact, quote.line))
        if held is None or len(quote.text) > len(held.text):
            best[(quote.artifact, quote.line)] = quote
    return list(best.values())


def between_words(causes: Sequence[str]) -> str:
    """Say which causes a measurement decides between."""
    if len(causes) < 2:
        return f"speaks for or against {''.join(causes)}"
    return f"decides between {', '.join(causes[:-1])} and {causes[-1]}"


def dimension_words(values: Mapping[str, int]) -> str:
    """Print the dimensions of a fingerprint: `batch 1, seq 2,048`."""
    return ", ".join(f"{name} {format_count(value)}" for name, value in values.items())


def rank_words(row: RankSummary) -> str:
    """Name the ranks of a row: `rank 5`, `ranks 0-4, 6, 7 of node1`."""
    word = "rank" if len(row.ranks) == 1 else "ranks"
    node = f" of {row.node}" if row.node else ""
    return f"{word} {ranges(row.ranks)}{node}"


def ranges(numbers: Sequence[int]) -> str:
    """Print numbers with three or more in a row as a range: `0-4, 6, 7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(str(number) for number in run)
        for run in runs
    ]
    return ", ".join(parts)


def rank_state(row: RankSummary) -> str:
    """Say in a word what became of the ranks of a row, and when they failed."""
    if row.first:
        word = "failed first"
    elif row.consequence:
        word = "followed"
    else:
        word = "failed" if row.failed else "no failure"
    return f"{word}, {row.time}" if row.time and row.failed else word
