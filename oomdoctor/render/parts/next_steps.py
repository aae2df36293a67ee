"""What to measure next: the command, its price, and what each answer would mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.layout import Line, Span, flow, line
from oomdoctor.render.parts.pieces import DEEP, INDENT, heading, paragraph, safe
from oomdoctor.render.words import between_words

if TYPE_CHECKING:
    from oomdoctor.model.plan import Diagnosis, Measurement
    from oomdoctor.render.theme import Theme
    from oomdoctor.render.view import View

DEFAULT_SHOWN = 3
MINUTE = 60


def next_steps(diagnosis: Diagnosis, theme: Theme, view: View) -> list[Line]:
    """Return the next measurements, the most telling per second first."""
    steps = diagnosis.next_measurements
    if not steps:
        return [*paragraph(NOTHING, theme, first="")] if view.next_only else []
    most = len(steps) if view.explain or view.next_only else DEFAULT_SHOWN
    title = "What to measure next"
    if diagnosis.conclusive and not view.next_only:
        title = "What would make it surer"
        most = most if view.explain else 1
    lines = [heading(title)]
    for number, step in enumerate(steps[:most], start=1):
        lines += _step(step, number, theme, view)
    return lines


NOTHING = "No measurement would change the answer."


def _step(step: Measurement, number: int, theme: Theme, view: View) -> list[Line]:
    spans = [Span(step.fact, "strong"), Span(f" ({_price(step, view)})", "dim")]
    if step.decides_between:
        spans.append(Span(f" {between_words(step.decides_between)}"))
    lines = flow(spans, width=theme.width, first=f"{INDENT}{number}. ")
    commands = step.command.split("\n")
    lines += [line(DEEP, Span(safe(text, theme), "command")) for text in commands if is_typed(text)]
    prose = [text for text in commands if not is_typed(text)]
    lines += [one for text in prose for one in paragraph(text, theme, style="command")]
    for meaning in step.meanings:
        lines += paragraph(meaning, theme, first=f"{DEEP}{theme.glyph('dot')} ")
    return lines


def is_typed(command: str) -> bool:
    """Say whether this is a command to type (kept on one line) and not an instruction to read."""
    first = command.split(" ", 1)[0]
    return not (first[:1].isupper() and first.isalpha())


def step_price(step: Measurement) -> str:
    """Say about how long a measurement takes."""
    return f"about {_seconds(step)}"


def _price(step: Measurement, view: View) -> str:
    if view.explain:
        return f"{_seconds(step)}, {step.gain_bits:.2f} bits"
    return step_price(step)


def _seconds(step: Measurement) -> str:
    seconds = step.seconds
    return f"{seconds:.0f} s" if seconds < MINUTE else f"{seconds / MINUTE:.0f} min"
