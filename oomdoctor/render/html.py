"""A report's page as one HTML file that needs nothing else and asks no network for anything.

Its scripts are known to the browser by their sums, so that no other one runs whatever a log says.
Without scripts all of the text and the pictures are there; with the charts' library installed the
pictures can be zoomed.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor import __version__
from oomdoctor.extras import Library, need
from oomdoctor.render.drawing import drawings_of
from oomdoctor.render.drawing_svg import picture_of
from oomdoctor.render.escape import visible
from oomdoctor.render.words import percent

if TYPE_CHECKING:
    from oomdoctor.render.charts import Charts
    from oomdoctor.render.drawing import Drawing
    from oomdoctor.render.page import Chart, Code, Flame, Page, Stack, StackPart

TEMPLATES = Path(__file__).parent / "templates"
LEAST = 0.5
FILLS = 6
KINDS = {
    "allocated": "fill0",
    "other_processes": "fill1",
    "outside_allocator": "fill2",
    "reserved_unallocated": "fill3",
    "free": "fill-free",
}
ROWS = {"+": " added", "-": " removed", "@": " hunk"}


def page_html(page: Page, *, still: bool = False) -> str:
    """Return the page as an HTML document; a `still` one leaves the charts' library out."""
    environment = _environment()
    pictured = _named(page)
    charts = None if still else _charts(pictured)
    script, style = _text("report.js"), _text("report.css")
    scripts = [script] if charts is None else [charts.library, script]
    filled = environment.get_template("page.html").render(
        page=page,
        version=__version__,
        style=style,
        script=script,
        sums=" ".join(map(_sum, scripts)),
        charts=charts,
        pictured=[[(id_, picture_of(one)) for id_, one in row] for row in pictured],
    )
    return str(filled)


def _named(page: Page) -> list[list[tuple[str, Drawing]]]:
    """Return the drawings of each section with the ids of their places."""
    found: list[list[tuple[str, Drawing]]] = []
    count = 0
    for section in page.sections:
        row = []
        for one in drawings_of(section):
            count += 1
            row.append((f"chart-{count}", one))
        found.append(row)
    return found


def _charts(pictured: list[list[tuple[str, Drawing]]]) -> Charts | None:
    """Return the charts of a page that has any, where their library is installed."""
    drawings = dict(pair for row in pictured for pair in row)
    if not drawings:
        return None
    from oomdoctor.render.charts import charts_of

    return charts_of(drawings)


def _sum(script: str) -> str:
    """Return what names a script in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8").strip()


@cache
def _environment() -> Library:
    jinja2 = need("jinja2", purpose="HTML", extra="html")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "shown": visible,
        "kept": _kept,
        "widths": widths,
        "fills": fills,
        "total": total,
        "share": share_words,
        "deep": _deep,
        "rows": code_rows,
    }
    return environment


def widths(chart: Chart) -> list[str]:
    """Return how wide each bar is in percent of the widest; what is not zero can be seen."""
    most = max((one.value for one in chart.bars), default=0) or 1
    return [
        f"{max(100 * one.value / most, LEAST):.1f}" if one.value > 0 else "0" for one in chart.bars
    ]


def total(stack: Stack) -> int:
    """Return what the whole bar stands for."""
    return max(stack.whole, sum(max(one.value, 0) for one in stack.parts), 1)


def share_words(part: StackPart, stack: Stack) -> str:
    """Return the share of a part in words; nothing where the whole is not known."""
    return percent(min(part.value / stack.whole, 1.0)) if stack.whole and part.value >= 0 else ""


def fills(stack: Stack) -> dict[str, str]:
    """Return the class of each part's fill by its name; what is free stays empty."""
    found = {one.name: KINDS[one.kind] for one in stack.parts if one.kind in KINDS}
    others = [one.name for one in stack.parts if one.kind not in KINDS]
    first = len(KINDS) - 1 if found else 0  # no fill twice
    return found | {name: f"fill{(first + at) % FILLS}" for at, name in enumerate(others)}


def _kept(text: str) -> str:
    """Return a row of code with its tabs, which a patch needs."""
    return "\t".join(map(visible, text.split("\t")))


def _deep(flame: Flame) -> int:
    return max((one.depth for one in flame.frames), default=0) + 1


def code_rows(code: Code) -> list[tuple[str, str]]:
    """Return the rows of a text with their classes, which those of a patch have."""
    rows = code.text.split("\n")
    if code.language != "diff":
        return [("", row) for row in rows]
    found = []
    named = True  # the names of the files stand above the first hunk
    for row in rows:
        named = (named or row.startswith("--- ")) and not row.startswith("@")
        found.append((" hunk" if named else ROWS.get(row[:1], ""), row))
    return found
