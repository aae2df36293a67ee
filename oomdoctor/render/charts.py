"""Drawings as charts of Bokeh with hover and zoom, where it is installed.

Colours are placeholders that the page's script replaces by those of its light or dark look. Words
are plain text to the library: it would take `$$x$$` for a formula, and fetch what sets formulas.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple
from oomdoctor.render.drawing import readings, thinned
from oomdoctor.render.escape import shorten, visible
from oomdoctor.render.ticks import number_words, unit_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.extras import Library
    from oomdoctor.render.drawing import Drawing

HEIGHT = 340
MOST_PLACES = 2000
LEAST_NAMED = 0.08
"""Share of the width from which on a stretch is named."""
SIGNS_WIDE = 80
"""How many letters the width has room for at least."""
FONT = "system-ui, sans-serif"
# placeholder -> the page's name of the colour; no colour of the page is one of these
COLOURS = {
    "#0b0b01": "--ink",
    "#0b0b02": "--soft",
    "#0b0b03": "--line",
    "#0b0b04": "--panel",
    "#0b0b05": "--mark",
    "#0b0b06": "--good",
    "#0b0b07": "--bad",
    "#0b0b10": "--line0",
    "#0b0b11": "--line1",
    "#0b0b12": "--line2",
    "#0b0b13": "--line3",
    "#0b0b14": "--line4",
}
_OF = {name: colour for colour, name in COLOURS.items()}
LINES = 5
DASHES = ("solid", "dashed", "dotted", "dotdash", "dashdot")


class Charts(NamedTuple):
    """What a page needs for its charts: the library's script, and the charts as JSON."""

    library: str
    items: str


def charts_of(drawings: Mapping[str, Drawing]) -> Charts | None:
    """Return the charts by the ids of their places; None where the library is missing."""
    try:
        embed, bokeh = import_module("bokeh.embed"), import_module("bokeh")
    except ImportError:
        return None
    items = [embed.json_item(_figure(one), target) for target, one in drawings.items()]
    values = {"colours": COLOURS, "items": items}
    # inside of a script element nothing but these characters could end it
    text = json.dumps(values, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")
    return Charts(_library(Path(str(bokeh.__file__)).parent), text)


def _library(folder: Path) -> str:
    """Return the library's script without the line that names its source map."""
    text = (folder / "server/static/js/bokeh.min.js").read_text(encoding="utf-8")
    kept = (line for line in text.splitlines() if not line.startswith("//# sourceMappingURL"))
    return "\n".join(kept).replace("</script", "<\\/script")


def _figure(drawing: Drawing) -> Library:
    plotting, models = import_module("bokeh.plotting"), import_module("bokeh.models")
    size, unit = unit_of(drawing.top)
    made = plotting.figure(
        height=HEIGHT,
        sizing_mode="stretch_width",
        x_range=models.Range1d(drawing.left, drawing.right, bounds="auto"),
        y_range=models.Range1d(0, drawing.top / size, bounds=(0, drawing.top / size)),
        tools="",
        output_backend="canvas",
        toolbar_location="above",
    )
    made.toolbar.logo = None
    _dress(made, drawing.across, unit)
    _bands(made, drawing)
    _lines(made, drawing, size)
    _levels(made, drawing, size)
    _dots(made, drawing, size)
    _moments(made, drawing)
    _tools(made, models)
    return made


def _dress(made: Library, across: str, unit: str) -> None:
    """Put the page's look on what stands around the picture."""
    models = import_module("bokeh.models")
    made.background_fill_color = made.border_fill_color = made.outline_line_color = None
    made.xgrid.grid_line_color = None
    made.ygrid.grid_line_color = _OF["--line"]
    made.min_border_right = 16
    for axis, name in ((made.xaxis[0], across), (made.yaxis[0], unit)):
        axis.axis_label = models.PlainText(text=visible(name)) if name else None
        axis.axis_label_text_color = axis.major_label_text_color = _OF["--soft"]
        axis.axis_label_text_font = axis.major_label_text_font = FONT
        axis.axis_label_text_font_style = "normal"
        axis.axis_line_color = axis.major_tick_line_color = _OF["--line"]
        axis.minor_tick_line_color = None
    made.xaxis[0].formatter = models.NumeralTickFormatter(format="0,0.[000]")


def _hover(made: Library, renderers: list[Library], tips: list[tuple[str, str]], mode: str) -> None:
    models = import_module("bokeh.models")
    made.add_tools(
        models.HoverTool(
            renderers=renderers,
            tooltips=tips,
            mode=mode,
            visible=False,
            point_policy="snap_to_data",
        )
    )


def _bands(made: Library, drawing: Drawing) -> None:
    if not drawing.bands:
        return
    source = {
        "left": [one.start for one in drawing.bands],
        "right": [one.end for one in drawing.bands],
        "fill": [0.9 if at % 2 else 0.0 for at in range(len(drawing.bands))],
    }
    made.quad(
        left="left",
        right="right",
        bottom=0,
        top=made.y_range.end,
        fill_color=_OF["--panel"],
        fill_alpha="fill",
        line_color=None,
        level="underlay",
        source=source,
    )
    for one in drawing.bands:
        share = (one.end - one.start) / (drawing.right - drawing.left)
        if share >= LEAST_NAMED:
            place = {"x": one.start, "y": 0, "x_offset": 4, "y_offset": 2}
            name = shorten(visible(one.name), int(SIGNS_WIDE * share), mark="…")
            made.add_layout(_label(name, colour="--soft", **place))


def _lines(made: Library, drawing: Drawing, size: int) -> None:
    for number, one in enumerate(drawing.paths):
        places = thinned(one.places, MOST_PLACES)
        source = {"x": [x for x, _ in places], "y": [y / size for _, y in places]}
        colour = _OF[f"--line{number % LINES}"]
        if one.filled:
            made.varea(
                x="x",
                y1=0,
                y2="y",
                fill_color=colour,
                fill_alpha=0.25,
                source=_source(source),
            )
        dash = DASHES[number % LINES]
        made.line(
            x="x", y="y", line_color=colour, line_width=2, line_dash=dash, source=_source(source)
        )
    if drawing.paths and not drawing.dots:
        _readings(made, drawing, size)


def _source(columns: dict[str, list[float]] | dict[str, list[str]]) -> Library:
    return import_module("bokeh.models").ColumnDataSource(columns)


def _readings(made: Library, drawing: Drawing, size: int) -> None:
    """Tell what every line and stretch is at the place that is pointed at, in one box."""
    read = readings(drawing)
    columns: dict[str, Library] = {
        "x": list(read.places),
        "y": [y / size for y in read.heights],
        "at": [number_words(x) for x in read.places],
    }
    tips = []
    for number, (name, words) in enumerate(read.rows):
        columns[f"row{number}"] = list(words)
        tips.append((visible(name), f"@row{number}"))
    drawn = made.line(x="x", y="y", line_alpha=0, line_width=12, source=_source(columns))
    _hover(made, [drawn], [*tips, (visible(drawing.across) or "at", "@at")], "vline")
    across = {"dimensions": "height", "line_color": _OF["--soft"], "line_alpha": 0.6}
    made.add_tools(import_module("bokeh.models").CrosshairTool(visible=False, **across))


def _levels(made: Library, drawing: Drawing, size: int) -> None:
    models = import_module("bokeh.models")
    for one in drawing.levels:
        line = {"line_color": _OF["--mark"], "line_dash": "dashed", "line_width": 1.5}
        made.add_layout(models.Span(location=one.y / size, dimension="width", **line))
        made.add_layout(_label(one.name, x=drawing.left, y=one.y / size, x_offset=6, y_offset=2))


def _moments(made: Library, drawing: Drawing) -> None:
    models = import_module("bokeh.models")
    middle = (drawing.left + drawing.right) / 2
    for one in drawing.moments:
        colour = "--soft" if one.calm else "--bad"
        line = {
            "line_color": _OF[colour],
            "line_width": 1 if one.calm else 2,
            "line_dash": "dashed" if one.calm else "solid",
        }
        made.add_layout(models.Span(location=one.x, dimension="height", **line))
        late = one.x > middle
        placed = {"text_align": "right" if late else "left", "x_offset": -6 if late else 6}
        made.add_layout(
            _label(
                one.name,
                x=one.x,
                y=made.y_range.end,
                y_offset=-16 * (one.row + 1),
                colour=colour,
                **placed,
            )
        )


def _label(words: str, *, colour: str = "--mark", **placed: Library) -> Library:
    models = import_module("bokeh.models")
    text = models.PlainText(text=visible(words))
    style = {"text_font": FONT, "text_font_size": "13px", "text_color": _OF[colour]}
    return models.Label(text=text, **style, **placed)


def _dots(made: Library, drawing: Drawing, size: int) -> None:
    for good, marker, colour in ((True, "circle", "--good"), (False, "x", "--bad")):
        dots = [one for one in drawing.dots if one.good is good]
        if not dots:
            continue
        source = {
            "x": [one.x for one in dots],
            "y": [one.y / size for one in dots],
            "label": [visible(one.label) for one in dots],
        }
        drawn = made.scatter(
            x="x",
            y="y",
            marker=marker,
            size=11,
            line_width=2,
            line_color=_OF[colour],
            fill_color=_OF[colour],
            source=source,
        )
        _hover(made, [drawn], [("", "@label")], "mouse")


def _tools(made: Library, models: Library) -> None:
    """Add the ways to zoom; a wheel alone scrolls the page, until its button is pressed."""
    drag = models.BoxZoomTool(dimensions="width")
    made.add_tools(
        drag,
        models.PanTool(dimensions="width"),
        models.WheelZoomTool(dimensions="width"),
        models.ZoomInTool(dimensions="width"),
        models.ZoomOutTool(dimensions="width"),
        models.ResetTool(),
    )
    made.toolbar.active_drag = drag
