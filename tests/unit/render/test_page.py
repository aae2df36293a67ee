"""A report's page in a terminal, as Markdown and as HTML: one content, three looks."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from oomdoctor.render.escape import cells
from oomdoctor.render.html import page_html, widths
from oomdoctor.render.layout import plain
from oomdoctor.render.page import Chart, ChartBar, Figure, Page, Section, Table
from oomdoctor.render.page_markdown import page_markdown
from oomdoctor.render.page_text import page_lines
from oomdoctor.render.theme import Theme

if TYPE_CHECKING:
    from collections.abc import Callable

    Golden = Callable[[str, str], None]

VOID = frozenset(("meta", "br", "img", "hr", "link", "input"))
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
    golden("screens/page.html", page_html(PAGE))


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


class Tags(HTMLParser):
    """Notes what an HTML document is made of, and fails where an element is not closed."""

    def __init__(self) -> None:
        """Start outside of everything."""
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def tags(page: Page) -> Tags:
    found = Tags()
    found.feed(page_html(page))
    found.close()
    assert found.open == []
    return found


def test_the_html_page_loads_nothing_and_runs_nothing() -> None:
    document = page_html(PAGE)
    found = tags(PAGE)

    assert {"script", "link", "img", "iframe"} & {tag for tag, _ in found.seen} == set()
    assert not any({"src", "href"} & set(attrs) for tag, attrs in found.seen if tag != "a")
    assert "://" not in document
    assert "@import" not in document
    assert "url(" not in document


def test_the_html_page_can_be_read_without_seeing_it() -> None:
    found = tags(PAGE)
    by_tag = {tag: [attrs for one, attrs in found.seen if one == tag] for tag, _ in found.seen}

    assert by_tag["html"][0]["lang"] == "en"
    assert len(by_tag["h1"]) == len(by_tag["main"]) == len(by_tag["title"]) == 1
    assert len(by_tag["table"]) == len(by_tag["caption"])
    assert all("scope" in attrs for attrs in by_tag["th"])
    labels = [attrs["aria-labelledby"] for attrs in by_tag["section"]]
    assert set(labels) <= {attrs.get("id") for _, attrs in found.seen}
    assert "prefers-color-scheme: dark" in page_html(PAGE)
    assert "@media print" in page_html(PAGE)


def test_nothing_of_an_input_acts_in_html() -> None:
    table = Table(caption=HOSTILE, headers=(HOSTILE,), rows=((HOSTILE,),))
    chart = Chart(caption=HOSTILE, label=HOSTILE, bars=(ChartBar(HOSTILE, 1, HOSTILE),))
    section = Section(title=HOSTILE, sentences=(HOSTILE,), chart=chart, table=table)
    figures = (Figure(HOSTILE, HOSTILE, HOSTILE),)
    page = Page(
        title=HOSTILE, lead=(HOSTILE,), figures=figures, sections=(section,), notes=(HOSTILE,)
    )

    found = tags(page)

    assert "script" not in {tag for tag, _ in found.seen}
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
