"""What would prove a cause: the command of the experiment, and what it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.experiments.proofs import YOUR_COMMAND, proofs_of
from oomdoctor.render.layout import Line, Span, line
from oomdoctor.render.parts.pieces import DEEP, INDENT, heading, paragraph, safe

if TYPE_CHECKING:
    from oomdoctor.experiments.proofs import Proof
    from oomdoctor.model.plan import Diagnosis
    from oomdoctor.render.theme import Theme
    from oomdoctor.render.view import View

TITLE = "What would prove it"
_CARD = "; on a card or a virtual one, since it is about the allocator"
_YOURS = f"{YOUR_COMMAND} stands for the command that failed."


def proofs(diagnosis: Diagnosis, theme: Theme, view: View) -> list[Line]:
    """Return the experiments for the leading causes."""
    del view
    lines: list[Line] = []
    found = proofs_of(diagnosis)
    for one in found:
        lines += paragraph(meaning(one), theme, first=INDENT)
        lines.append(line(DEEP, Span(safe(one.command, theme), "command")))
    for note in notes_of(found):
        lines += paragraph(note, theme, first=INDENT)
    return [heading(TITLE), *lines] if lines else []


def meaning(proof: Proof) -> str:
    """Say what the experiment compares."""
    where = _CARD if proof.needs_card else ""
    return f"{proof.cause}: the run as it is beside one with {proof.title}{where}"


def notes_of(found: tuple[Proof, ...]) -> list[str]:
    """Return what a reader has to fill in."""
    return [_YOURS] if any(YOUR_COMMAND in one.command for one in found) else []
