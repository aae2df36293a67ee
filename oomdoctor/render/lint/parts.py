"""A finding on the page: its line as compilers print it, the source, what cures it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.enums import Severity
from oomdoctor.render.escape import cells, shorten
from oomdoctor.render.layout import Line, Span, flow, line
from oomdoctor.render.lint.words import place, price, remarks
from oomdoctor.render.parts.fixes import patch_lines
from oomdoctor.render.parts.pieces import DEEP, INDENT, paragraph, quoted, safe
from oomdoctor.render.words import SAFETY, distinct, sentence

if TYPE_CHECKING:
    from oomdoctor.model.lint import FileReport, LintFinding
    from oomdoctor.model.plan import Patch, Prescription
    from oomdoctor.render.lint.view import LintView
    from oomdoctor.render.theme import Theme

STYLES = {Severity.ERROR: "bad", Severity.WARNING: "aside", Severity.INFO: "strong"}
BASES = {
    "measured": "a measurement",
    "source": "the library's source",
    "documented": "the library's documentation",
    "arithmetic": "arithmetic",
}
NUMBER = 5  # columns of a line's number
LEAST_ROOM = 20
BEFORE = 3  # a third of a line that has to be cut stands before the place
MOST_OTHERS = 2


def head(finding: LintFinding, file: FileReport, theme: Theme) -> tuple[Span, ...]:
    """Return `path:line:col: severity CODE rule: message`, the line that tools look for."""
    style = STYLES[finding.severity]
    return (
        Span(f"{safe(place(finding, file.path), theme)}:", "place"),
        Span(" "),
        Span(finding.severity.value, style),
        Span(" "),
        Span(finding.code, "strong"),
        Span(f" {safe(finding.rule, theme)}:"),
        Span(f" {safe(sentence(finding.message), theme)}"),
    )


def finding_lines(
    finding: LintFinding, file: FileReport, theme: Theme, view: LintView
) -> list[Line]:
    """Return all that is said about a finding."""
    lines = flow(head(finding, file, theme), width=theme.width, first="", rest=INDENT)
    lines += source(finding, theme)
    lines += _others(finding, theme, view)
    for text in remarks(finding):
        lines += paragraph(text, theme, first=INDENT, rest=DEEP, style="dim")
    shown = finding.fixes if view.is_talkative else finding.fixes[: view.fixes]
    for one in shown:
        lines += _fix(one, finding, theme, view)
    more = [one.title for one in finding.fixes[len(shown) :]]
    if more:
        text = f"{len(more)} more with -v: {'; '.join(more)}"
        lines += paragraph(text, theme, first=INDENT, style="dim")
    if view.is_talkative:
        known = f"known from {BASES.get(finding.basis, finding.basis)}" if finding.basis else None
        for text in filter(None, (known, finding.url)):
            lines += paragraph(text, theme, first=INDENT, style="dim")
    return lines


def source(finding: LintFinding, theme: Theme) -> list[Line]:
    """Return the source line with a mark under the place; nothing where there is none."""
    text = finding.source_line
    if text is None or finding.line is None or not text.strip():
        return []
    bar = theme.glyph("quote")
    number = f"{finding.line:>{NUMBER}} {bar} "
    room = max(theme.width - cells(number), LEAST_ROOM)
    start = max((finding.column or 1) - 1, 0)
    end = max((finding.end_column or 0) - 1, start + 1)
    before, marked, after = (
        safe(part, theme) for part in (text[:start], text[start:end], text[end:].rstrip())
    )
    before, marked, after = _cut(before, marked, after, room=room, mark=theme.glyph("cut"))
    gutter = " " * NUMBER
    under = " " * cells(before) + "^" * max(cells(marked), 1)
    return [
        line(Span(number, "dim"), Span(before), Span(marked, "strong"), Span(after)),
        line(Span(f"{gutter} {bar} ", "dim"), Span(under, STYLES[finding.severity])),
    ]


def _cut(before: str, marked: str, after: str, *, room: int, mark: str) -> tuple[str, str, str]:
    """Cut what stands around a place, so that it is seen on one line."""
    if cells(before + marked + after) <= room:
        return before, marked, after
    head_room = room // BEFORE
    if cells(before) > head_room:
        before = mark + before[len(before) - max(head_room - len(mark), 0) :]
    left = room - cells(before)
    if cells(marked) > left:
        return before, marked[: max(left - len(mark), 1)] + mark, ""
    left -= cells(marked)
    if cells(after) > left:
        after = after[: max(left - len(mark), 0)] + mark if left >= len(mark) else ""
    return before, marked, after


def _others(finding: LintFinding, theme: Theme, view: LintView) -> list[Line]:
    """Return the other places that make the finding: of its file as lines, of others by name."""
    here = (finding.path, finding.line)
    found = [one for one in distinct(finding.quotes) if (one.artifact, one.line) != here]
    shown = found if view.is_talkative else found[:MOST_OTHERS]
    lines: list[Line] = []
    for one in shown:
        if one.artifact == finding.path and finding.line is not None:
            number = f"{one.line:>{NUMBER}} {theme.glyph('quote')} "
            room = max(theme.width - cells(number), LEAST_ROOM)
            text = shorten(safe(one.text.strip(), theme), room, mark=theme.glyph("cut"))
            lines.append(line(Span(number, "dim"), Span(text)))
        else:
            lines += quoted((one,), theme)
    return lines


def _fix(one: Prescription, finding: LintFinding, theme: Theme, view: LintView) -> list[Line]:
    """Return a fix: what it does, what it saves and costs, its patches."""
    spans = [
        Span("fix", "good"),
        Span(f": {sentence(safe(one.title, theme))}"),
        Span(f" [{SAFETY[one.safety.value]}]", "dim"),
    ]
    lines = flow(spans, width=theme.width, first=INDENT, rest=DEEP)
    costs = price(one)
    if costs:
        lines += paragraph(costs, theme)
    if one.advice and not any(patch.diff for patch in one.patches):
        lines += paragraph(sentence(one.advice), theme)
    for patch in one.patches:
        lines += _patch(patch, finding, theme, view)
    for caution in one.cautions:
        told = [Span("caution", "aside"), Span(f": {sentence(safe(caution, theme))}")]
        lines += flow(told, width=theme.width, first=f"{DEEP}{theme.glyph('aside')} ")
    return lines


def _changed(texts: list[str]) -> list[str]:
    """Return the lines of a diff that say something else, without those whose end alone does."""
    found = [text for text in texts if text.startswith(("-", "+"))][2:]
    both = {text[1:] for text in found if text[0] == "-"} & {
        text[1:] for text in found if text[0] == "+"
    }
    return [text for text in found if text[1:] not in both]


def _patch(patch: Patch, finding: LintFinding, theme: Theme, view: LintView) -> list[Line]:
    """Return a diff word for word, or settings as typed.

    Of a diff of the file that is spoken of only the lines that change are shown.
    """
    if patch.file == finding.path and not view.is_talkative:
        return patch_lines(patch, theme, shown_of=_changed)
    return patch_lines(patch, theme)
