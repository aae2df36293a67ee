"""A report's page in a terminal, as Markdown and as HTML: one content, three looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.render.escape import cells
from oomdoctor.render.html import page_html, widths
from oomdoctor.render.layout import plain
from oomdoctor.render.page import Chart, ChartBar, Figure, Page, Section, Table
from oomdoctor.render.page_markdown import page_markdown
from oomdoctor.render.page_text import page_lines
from oomdoctor.render.theme import Theme
from tests.unit.render.reading_html import read_html

if TYPE_CHECKING:
    from collections.abc import Callable

    Golden = Callable[[str, str], None]

HOSTILE = "<script>alert(1)</script> & \x1b[2J \u202e"
CHART = Chart(
    caption="How many rows have how many tokens",
    label="tokens",
    bars=(
        ChartBar("0 to 255", 900, "900   90 %"),
        ChartBar("256 to 511", 99, "99   10 %"),
        ChartBar("512 to 767", 0, "0    0 %"),
        ChartBar("768 to 1,023", 1, "1  < 1 %", marked=True),
    ),
    legend="longer than the limit of 512",
)
TABLE = Table(
    caption="The longest rows",
    headers=("place", "tokens"),
    rows=(("train.jsonl:17", "1,000"), ("train.jsonl:4", "300")),
    numeric=frozenset((1,)),
    marked=frozenset((0,)),
)
PAGE = Page(
    title="train.jsonl: 1,000 rows",
    lead=("One row exceeds the limit of 512 tokens.",),
    figures=(Figure("median row", "100 tokens"), Figure("longest row", "1,000 tokens", "line 17")),
    sections=(
        Section(title="Lengths", sentences=("What is there.",), chart=CHART),
        Section(title="Longest rows", table=TABLE),
    ),
    notes=("No chat template is applied.",),
)


def text(page: Page, *, width: int = 80, unicode: bool = True) -> str:
    return plain(page_lines(page, Theme(width=width, unicode=unicode)))


@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize("unicode", [True, False])
def test_the_page_in_a_terminal_looks_as_agreed(golden: Golden, width: int, unicode: bool) -> None:
    shown = text(PAGE, width=width, unicode=unicode)

    assert max(map(cells, shown.split("\n"))) <= width
    assert unicode or shown.isascii()
    golden(f"screens/page-{width}{'' if unicode else '-ascii'}.txt", shown + "\n")


def test_the_page_as_markdown_looks_as_agreed(golden: Golden) -> None:
    golden("screens/page.md", page_markdown(PAGE))


def test_the_page_as_html_looks_as_agreed(golden: Golden) -> None:
    golden("screens/page.html", page_html(PAGE).partition("</head>\n")[2].partition("<script>")[0])


def test_quiet_leaves_the_answer_alone() -> None:
    lines = page_lines(PAGE, Theme(), brief=True)

    assert plain(lines).split("\n") == [PAGE.title, f"  {PAGE.lead[0]}"]


def test_a_bar_is_seen_wherever_its_value_is_not_zero() -> None:
    bars = [line for line in text(PAGE).split("\n") if " to " in line]

    assert [("\u2588" in bar or "\u258f" in bar, "\u2592" in bar) for bar in bars] == [
        (True, False),
        (True, False),
        (False, False),
        (False, True),
    ]
    assert widths(CHART) == ["100.0", "11.0", "0", "0.5"]


def test_a_wide_table_gives_way_where_its_cells_are_longest() -> None:
    table = Table(caption="", headers=("place", "tokens"), rows=(("x" * 200, "1,000"),))

    shown = text(Page(title="t", lead=(), sections=(Section(title="s", table=table),)), width=60)

    assert max(map(cells, shown.split("\n"))) == 60
    assert shown.endswith("1,000")


def test_the_html_page_loads_nothing_and_runs_only_its_own() -> None:
    found = read_html(page_html(PAGE))

    assert {"link", "img", "iframe", "object"} & found.tags == set()
    assert len(found.scripts) == 1
    assert "://" not in page_html(PAGE)
    assert found.policy.startswith("default-src 'none'; ")


def test_the_html_page_can_be_read_without_seeing_it() -> None:
    found = read_html(page_html(PAGE))

    assert found.all("html")[0]["lang"] == "en"
    assert len(found.all("h1")) == len(found.all("main")) == len(found.all("title")) == 1
    assert len(found.all("table")) == len(found.all("caption"))
    assert all("scope" in attributes for attributes in found.all("th"))
    labels = {attributes["aria-labelledby"] for attributes in found.all("section")}
    assert labels <= {attributes.get("id") for _, attributes in found.elements}
    assert "prefers-color-scheme: dark" in found.style
    assert "@media print" in found.style


def test_nothing_of_an_input_acts_in_html() -> None:
    table = Table(caption=HOSTILE, headers=(HOSTILE,), rows=((HOSTILE,),))
    chart = Chart(caption=HOSTILE, label=HOSTILE, bars=(ChartBar(HOSTILE, 1, HOSTILE),))
    section = Section(title=HOSTILE, sentences=(HOSTILE,), chart=chart, table=table)
    figures = (Figure(HOSTILE, HOSTILE, HOSTILE),)
    page = Page(
        title=HOSTILE, lead=(HOSTILE,), figures=figures, sections=(section,), notes=(HOSTILE,)
    )

    found = read_html(page_html(page))

    assert len(found.scripts) == 1
    assert found.text.count("alert(1)") >= 12
    assert "\x1b" not in page_html(page)
    assert "\u202e" not in page_html(page)
    assert "<script" not in page_markdown(page).replace("`", "").split("```")[0].split("\n")[0]
    assert "\x1b" not in text(page)


def test_html_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from oomdoctor.errors import UsageError
    from oomdoctor.render import html

    html._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)

    with pytest.raises(UsageError, match=r"pip install 'oomdoctor\[html\]'"):
        page_html(PAGE)
