"""Turn findings into plain sentences: the verdict, what each cause says, what speaks against it."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.model.enums import Kind, Origin
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.core import Fact, Failure, Finding
    from oomdoctor.reason.rank import Ranking
    from oomdoctor.rules.shape import Rule

_WHAT = {
    "host": "Host memory, not GPU memory, ran out",
    "not_memory": "This is not a shortage of memory",
}
_OPEN_ENDS = {
    "host.killed": "Signal 9 ended a process, which no shortage of a card's own memory does",
    "launch.worker_lost": "A worker was gone without a word, and nothing speaks of a full card",
}
_HEDGES = ("about", "least", "most", "over", "under", "than", "~")
_LOWER_BOUNDS = ("_low", ".shortfall")
_UPPER_BOUNDS = ("_high",)
# Facts of kind ratio that are no shares: a rate of 2e-05 is not "0 %".
_PLAIN_NUMBERS = frozenset(
    (
        "host.victim_pid",
        "train.learning_rate",
        "train.max_grad_norm",
        "train.weight_decay",
        "train.warmup_steps",
        "lora.alpha",
        "lora.scale",
        "save.steps",
        "eval.steps",
    )
)


def headline(
    answer: str, resource: str, *, ranking: Ranking, sentence: str, event: Failure | None
) -> str:
    """Return the verdict in one sentence; it never reassures."""
    if answer == "nothing_found":
        return (
            "No failure and no sign of one was recognised in the input; "
            "this does not show that the run is healthy."
        )
    if answer == "cause" and sentence:
        return sentence
    if answer == "not_gpu_oom":
        return _off_card(resource, ranking, sentence, event)
    if event is None:
        start = "No failure message was given, only signs of a shortage"
    else:
        start = "The inputs do not settle the cause"
    if not ranking.findings or not sentence:
        return f"{start}."
    share = round(ranking.findings[0].probability * 100)
    return f"{start}; first in line with {share} %: {sentence}"


def _off_card(resource: str, ranking: Ranking, sentence: str, event: Failure | None) -> str:
    """Say what it was, if not the memory of the card."""
    what = _WHAT[resource]
    if not sentence:
        return f"{what}; the deeper reason stays open."
    if ranking.conclusive:
        return f"{what}: {sentence}"
    if resource == "host":
        what = _OPEN_ENDS.get(_only_told(event), what)
    return f"{what}; most likely: {sentence}"


def _only_told(event: Failure | None) -> str:
    """Return the key of all that the event tells, where it tells one thing."""
    told = [fact.key for fact in event.facts if fact.value is True] if event is not None else []
    return told[0] if len(told) == 1 else ""


def says(rule: Rule, facts: Mapping[str, Fact]) -> str:
    """Fill the rule's verdict sentence with printed facts; its title where one is missing.

    A clause in brackets is left out where one of its own is missing.
    """
    plain = rule.title if rule.title.endswith((".", "?", "!")) else f"{rule.title}."
    if rule.says is None:
        return plain
    told = _clauses().sub(lambda found: found[1] if _is_told(found[1], facts) else "", rule.says)
    if not _is_told(told, facts):
        return plain
    filled = _places().sub(lambda found: _worded(found, facts[found[1]]), told)
    return _upper_first(" ".join(filled.split()))


def against(finding: Finding, *, least: float = 0.0) -> tuple[str, ...]:
    """Say which counted evidence lines speak against a finding by `least` nats, strongest first."""
    counted = [weight for weight in finding.weights if weight.counted and weight.nats < 0]
    lines = [weight for weight in counted if weight.nats <= -least]
    ordered = sorted(lines, key=lambda weight: (weight.nats, weight.label))
    return tuple(
        f"{_upper_first(weight.label)}."
        if weight.verdict.truth == "true"
        else f"Expected, but not so: {weight.label}."
        for weight in ordered
    )


def print_fact(fact: Fact) -> str:
    """Print a fact's value by its kind: sizes with units, ratios in percent, counts with commas."""
    kind, value = _kind_of(fact.key), fact.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _printed_number(fact.key, kind, value)
    return str(value).strip().split("\n")[-1]


def _printed_number(key: str, kind: Kind | None, value: float) -> str:
    if key in _PLAIN_NUMBERS:
        return f"{value:g}"
    if kind is Kind.BYTES:
        return format_size(value)
    if kind is Kind.RATIO:
        return f"{value * 100:.0f} %"
    if kind is Kind.SECONDS:
        return f"{value:g} s"
    return format_count(value) if isinstance(value, int) else str(value)


def _worded(found: re.Match[str], fact: Fact) -> str:
    """Print a fact so that inferred numbers are told from stated ones."""
    printed = print_fact(fact)
    if isinstance(fact.value, (bool, str)):
        return printed
    before = found.string[: found.start()].split()
    if before and before[-1].lower() in _HEDGES:
        return printed
    if fact.key.endswith(_LOWER_BOUNDS) or fact.key.removesuffix("_share").endswith(_LOWER_BOUNDS):
        return f"at least {printed}"
    if fact.key.removesuffix("_share").endswith(_UPPER_BOUNDS):
        return f"at most {printed}"
    exact = fact.origin in (Origin.STATED, Origin.PROBED) or _kind_of(fact.key) is Kind.COUNT
    exact = exact or fact.key in _PLAIN_NUMBERS
    return printed if exact else f"about {printed}"


def _kind_of(key: str) -> Kind | None:
    from oomdoctor.facts.registry import find

    spec = find(key)
    return None if spec is None else spec.kind


@cache
def _places() -> re.Pattern[str]:
    return re.compile(r"\{([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+)\}")


@cache
def _clauses() -> re.Pattern[str]:
    """Return the pattern of a clause in brackets, which is left out where a figure is missing."""
    return re.compile(r"\[([^\[\]]*\{[^\[\]]*)\]")


def _is_told(text: str, facts: Mapping[str, Fact]) -> bool:
    return all(found[1] in facts for found in _places().finditer(text))


def _upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]
