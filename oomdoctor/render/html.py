"""A report's page as one HTML file that needs nothing else: no network, no script.

All reports share `templates/base.html`; a report of its own look extends it with blocks.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor import __version__
from oomdoctor.extras import Library, need
from oomdoctor.render.escape import visible

if TYPE_CHECKING:
    from oomdoctor.render.page import Chart, Curve, Page, Plot

TEMPLATES = Path(__file__).parent / "templates"
LEAST = 0.5


def page_html(page: Page, *, template: str = "page.html", **values: object) -> str:
    """Return the page as an HTML document; `values` are for templates that need more."""
    filled = _environment().get_template(template).render(page=page, version=__version__, **values)
    return str(filled)


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
    environment.filters["shown"] = visible
    environment.filters["widths"] = widths
    environment.filters["drawn"] = _drawn
    environment.filters["plotted"] = _plotted
    return environment


def _drawn(curve: Curve) -> object:
    from oomdoctor.render.pictures_svg import drawn

    return drawn(curve)


def _plotted(plot: Plot) -> object:
    from oomdoctor.render.plot_svg import plotted

    return plotted(plot)


def widths(chart: Chart) -> list[str]:
    """Return how wide each bar is in percent of the widest; what is not zero can be seen."""
    most = max((one.value for one in chart.bars), default=0) or 1
    return [
        f"{max(100 * one.value / most, LEAST):.1f}" if one.value > 0 else "0" for one in chart.bars
    ]
