"""What an interview shows: a question, why it is put, what was understood, what moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.reason.fallbacks import is_known
from oomdoctor.reason.interview import moves
from oomdoctor.reason.narrate import print_fact
from oomdoctor.render.layout import BLANK, Span, flow
from oomdoctor.render.words import percent

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook
    from oomdoctor.reason.interview import Answer, Prospect
    from oomdoctor.reason.supposing import Belief
    from oomdoctor.render.layout import Line
    from oomdoctor.render.theme import Theme

_LONGEST_VALUE = 60
_MOST_SHOWN = 8
# Facts that hold whole texts, or that only count what was read or said.
_UNSPOKEN = (
    "job.text",
    "job.settings",
    "job.calls",
    "log.text",
    "trace.stack",
    "oom.events",
    "env.packages",
    "growth.points",
)


def opening(theme: Theme) -> list[Line]:
    """Say how answers may look."""
    parts = [
        Span("Answer with a number or in your own words. "),
        Span("Enter", "command"),
        Span(": don't know. "),
        Span("why", "command"),
        Span(", "),
        Span("back", "command"),
        Span(", "),
        Span("quit", "command"),
        Span(" (answers are kept)."),
    ]
    return flow(parts, width=theme.width)


def question(prospect: Prospect, number: int, theme: Theme) -> list[Line]:
    """Show a question with its numbered answers."""
    asked = prospect.question
    lines: list[Line] = [BLANK]
    lines += flow([Span(asked.text, "heading")], width=theme.width, first=f"{number}. ")
    if asked.kind == "choice":
        for at, choice in enumerate(asked.choices, start=1):
            lines += flow([Span(choice.text)], width=theme.width, first=f"   {at:>2}  ")
    if asked.hint:
        lines += flow([Span(asked.hint, "dim")], width=theme.width, first="   ")
    if asked.kind == "paste":
        lines += flow([Span("end with an empty line", "dim")], width=theme.width, first="   ")
    return lines


def why(prospect: Prospect, theme: Theme) -> list[Line]:
    """Say what a question promises and what each answer would mean."""
    asked = prospect.question
    promise = (
        f"About {asked.seconds:.0f} s for {prospect.gain_bits:.2f} bits: "
        "of all questions left, the most per second. Each answer and what would lead then:"
    )
    lines = flow([Span(promise)], width=theme.width, first="   ")
    for one in prospect.outcomes:
        leader = one.belief.leader
        says = (
            f"{one.choice.text} (expected {percent(one.probability)}): "
            f"{leader} {percent(one.belief.masses.get(leader, 0.0))}"
        )
        lines += flow([Span(says)], width=theme.width, first=f"   {theme.glyph('dot')} ")
    return lines


def explained(theme: Theme) -> list[Line]:
    """Say what may be typed."""
    rows = (
        ("Enter, ?", "don't know: it is not asked again"),
        ("why", "why this question, and what each answer would mean"),
        ("back", "take the last answer back"),
        ("quit, Ctrl-D", "leave; the answers are kept"),
        ("run.phase=eval", "state a fact by its key (oomdoctor facts lists them)"),
        ("no run.phase", "take a fact back that was understood wrongly"),
    )
    lines: list[Line] = []
    for name, meaning in rows:
        lines += flow([Span(meaning)], width=theme.width, first=f"   {name:<16}")
    return lines


def understood(answer: Answer, before: FactBook, after: FactBook) -> tuple[str, ...]:
    """Return the facts, as `key = value`, that an answer added or changed."""
    from oomdoctor.render.escape import visible

    stated = {item.partition("=")[0] for item in answer.facts}
    found = []
    for key, fact in after.facts.items():
        held = before.get(key)
        if key in _UNSPOKEN or not is_known(after, key):
            continue
        is_new = held is None or held.value != fact.value
        if key in stated or (is_new and fact.origin.value == "stated"):
            value = visible(" ".join(print_fact(fact).split()), ascii_only=False)
            found.append(f"{key} = {value[:_LONGEST_VALUE]}")
    found += [f"{key} is taken back" for key in answer.drops if before.get(key) is not None]
    return tuple(found)


def moved(facts: tuple[str, ...], before: Belief, after: Belief, theme: Theme) -> list[Line]:
    """Show what was understood and how the ranking moved."""
    arrow = "→" if theme.unicode else "->"
    lines: list[Line] = []
    if facts:
        shown = ", ".join(facts[:_MOST_SHOWN])
        more = f" and {len(facts) - _MOST_SHOWN} more" if len(facts) > _MOST_SHOWN else ""
        lines += flow([Span(f"{shown}{more}")], width=theme.width, first="   understood: ")
    rows = moves(before, after)
    if not any(percent(row.before) != percent(row.after) for row in rows):
        return [*lines, *flow([Span("nothing moves")], width=theme.width, first="   ")]
    for at, row in enumerate(rows):
        change = f"{percent(row.before)} {arrow} {percent(row.after)}"
        mark = Span(row.cause, "strong") if at == 0 else Span(row.cause)
        leads = "  leads" if at == 0 else ""
        lines += flow([mark, Span(f"  {change}{leads}")], width=theme.width, first="   ")
    return lines


def not_understood(prospect: Prospect, theme: Theme) -> list[Line]:
    """Say what would be understood."""
    count = len(prospect.question.choices)
    words = (
        f"a number from 1 to {count}, your own words, or Enter for 'don't know'"
        if prospect.question.kind == "choice"
        else "a value, your own words, or Enter for 'don't know'"
    )
    return flow([Span(words)], width=theme.width, first="   ")


def nothing_understood(answer: Answer, theme: Theme) -> list[Line]:
    """Say that an answer is kept although no fact was found in it."""
    kind = "paste" if answer.pasted else "answer"
    words = f"no fact was recognised in this {kind}; its words are kept for the rules to read"
    return flow([Span(words, "dim")], width=theme.width, first="   ")


def refused(message: str, theme: Theme) -> list[Line]:
    """Show why a line cannot be taken."""
    lines: list[Line] = []
    for part in message.split("\n"):
        lines += flow([Span(part.strip())], width=theme.width, first="   ")
    return lines
