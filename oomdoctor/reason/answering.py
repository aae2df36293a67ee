"""Understand an answer: a number of the list, its words, a size, KEY=VALUE, or free words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.evidence import symptoms
from oomdoctor.facts.given import parse_one
from oomdoctor.reason.interview import Answer

if TYPE_CHECKING:
    from oomdoctor.facts.question import Question

NOT_KNOWN = frozenset(
    (
        *("", "?", "-", "don't know", "dont know", "do not know", "i don't know", "dk", "idk"),
        *("not sure", "unsure", "no idea", "unknown", "can't say", "skip", "next", "n/a", "na"),
    )
)
COMMANDS = frozenset(("back", "why", "quit", "help"))
_SHORT = {"q": "quit", "exit": "quit", "b": "back", "h": "help", "?why": "why", "why?": "why"}
_LONGEST_NUMBER = 3
_YES = frozenset(("yes", "y", "yep", "yeah", "true", "on"))
_NO = frozenset(("no", "n", "nope", "false", "off"))


def command_of(line: str) -> str | None:
    """Return the command that a line is: back, why, quit or help; None where it is an answer."""
    word = line.strip().lower().lstrip(":")
    word = _SHORT.get(word, word)
    return word if word in COMMANDS else None


def understand(question: Question, line: str) -> Answer | None:
    """Return what a line answers; None where nothing in it can be used as an answer.

    Words that state no fact by themselves are kept: they are read like a note about the job.
    """
    text = line.strip()
    if text.lower().rstrip(".!") in NOT_KNOWN:
        return Answer(question=question.id)
    facts = _stated(text)
    if facts is not None:
        return Answer(question=question.id, facts=facts)
    chosen = _chosen(question, text)
    if chosen is not None:
        return Answer(question=question.id, facts=chosen)
    if question.kind == "number":
        facts = _number(question, text)
        if facts is not None:
            return Answer(question=question.id, facts=facts)
    if re.fullmatch(r"\d{1,3}[.)]?", text) and question.kind == "choice":
        return None
    return Answer(question=question.id, text=text, facts=symptoms.read(text))


def pasted(question: Question, text: str) -> Answer:
    """Return a paste as an answer; its readers are those of any other input."""
    return Answer(question=question.id, text=text, pasted=True)


def _stated(text: str) -> tuple[str, ...] | None:
    """Return KEY=VALUE statements where the line is made of nothing else; UsageError if wrong."""
    if not re.match(r"[a-z_]+\.[a-z_0-9]+ ?=(?!=)", text):
        return None
    parts = re.split(r"[,;]\s*(?=[a-z_]+\.[a-z_0-9]+ ?=)", text)
    return tuple(_checked(part) for part in parts if part.strip())


def _checked(item: str) -> str:
    fact = parse_one(item)
    return f"{fact.key}={item.partition('=')[2].strip()}"


def _chosen(question: Question, text: str) -> tuple[str, ...] | None:
    """Return the facts of the answer that a number, a word or its beginning names."""
    if question.kind != "choice":
        return None
    low = text.lower().rstrip(".)")
    if low.isdecimal() and len(low) <= _LONGEST_NUMBER:
        at = int(low) - 1
        return question.choices[at].sets if 0 <= at < len(question.choices) else None
    names = [one.text.lower() for one in question.choices]
    if set(names) == {"yes", "no"} and low in _YES | _NO:
        low = "yes" if low in _YES else "no"
    found = [at for at, name in enumerate(names) if name == low]
    if not found and len(low) >= 3:
        found = [at for at, name in enumerate(names) if name.startswith(low)]
    return question.choices[found[0]].sets if len(found) == 1 else None


def _number(question: Question, text: str) -> tuple[str, ...] | None:
    if question.fact is None:
        return None
    words = {"none": "0", "no": "0", "zero": "0"}
    value = words.get(text.lower(), text)
    try:
        return (_checked(f"{question.fact}={value}"),)
    except UsageError:
        return None
