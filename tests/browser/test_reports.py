"""Reports in a real browser: quiet, shut off from the network, readable by everybody, alive.

They need playwright, a Chromium and axe: `.ci/browser` installs what it can have and runs them.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.reports import ACTING, REPORTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.browser

KINDS = [*REPORTS, "run-still", "bisect-still"]
OPEN_ALL = "for (const one of document.querySelectorAll('details')) one.open = true"
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
CHARTED = ("run", "recorded", "snapshot", "bisect")
needs_charts = pytest.mark.skipif(
    find_spec("bokeh") is None, reason="the charts' library (extra `report`) is not installed"
)


class Opened:
    """A page with what it said on its console and what it asked for."""

    def __init__(self, page: Any) -> None:
        """Listen to a page before it is opened."""
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda one: self.said.append(f"{one.type}: {one.text}"))
        page.on("pageerror", lambda one: self.said.append(f"error: {one}"))
        page.on("request", lambda one: self.asked.append(one.url))

    @property
    def complaints(self) -> list[str]:
        """What went wrong; the charts' library says in a line that it is done."""
        return [one for one in self.said if one.startswith(("error", "warning"))]


@contextmanager
def opened(browser: Any, path: Path, **settings: Any) -> Iterator[Opened]:
    context = browser.new_context(**({"viewport": DESKTOP} | settings))
    found = Opened(context.new_page())
    found.page.goto(path.as_uri())
    if found.page.locator("#charts").count() and settings.get("java_script_enabled", True):
        found.page.wait_for_selector("html[data-charts=drawn]")
        found.page.wait_for_function("Bokeh.documents.every(one => one.is_idle)")
    yield found
    context.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_says_nothing_and_asks_for_nothing(
    browser: Any, reports: dict[str, Path], kind: str
) -> None:
    with opened(browser, reports[kind]) as found:
        found.page.mouse.move(600, 450)
        found.page.emulate_media(color_scheme="dark")
        found.page.wait_for_timeout(300)

        assert found.complaints == []
        assert found.asked == [reports[kind].as_uri()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_bars_anybody(
    browser: Any, reports: dict[str, Path], axe: str, kind: str, scheme: str
) -> None:
    settings: dict[str, Any] = {"color_scheme": scheme, "bypass_csp": True}
    with opened(browser, reports[kind], **settings) as found:
        found.page.evaluate(
            "for (const one of document.querySelectorAll('details')) one.open = true"
        )
        found.page.evaluate(axe)
        barriers = found.page.evaluate("axe.run()")["violations"]

        shown = [(one["id"], one["impact"], one["nodes"][0]["html"]) for one in barriers]
        assert shown == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_phone_shows_a_report_without_scrolling_aside(
    browser: Any, reports: dict[str, Path], kind: str
) -> None:
    with opened(browser, reports[kind], viewport=PHONE, has_touch=True) as found:
        found.page.evaluate(
            "for (const one of document.querySelectorAll('details')) one.open = true"
        )
        wide = found.page.evaluate("document.documentElement.scrollWidth")

        assert wide <= PHONE["width"]


@pytest.mark.parametrize("kind", ["run", "run-still", "recorded", "snapshot", "bisect"])
def test_what_an_input_says_is_shown_and_does_nothing(
    browser: Any, reports: dict[str, Path], kind: str
) -> None:
    with opened(browser, reports[kind]) as found:
        assert ACTING in found.page.text_content("body")
        assert "taken" not in (found.page.title() if kind != "snapshot" else "")
        assert found.page.evaluate("document.title").count("<script>") == (kind == "snapshot")
        assert found.page.locator("img").count() == 0


def test_a_script_that_is_not_the_reports_own_does_not_run(
    browser: Any, reports: dict[str, Path], tmp_path: Path
) -> None:
    document = reports["run-still"].read_text(encoding="utf-8")
    changed = tmp_path / "changed.html"
    foreign = "<script>document.title='taken over'</script></main>"
    changed.write_text(document.replace("</main>", foreign), encoding="utf-8")

    with opened(browser, changed) as found:
        assert found.page.title() != "taken over"
        assert any("Content Security Policy" in one for one in found.said)


@pytest.mark.parametrize("kind", CHARTED)
def test_without_scripts_all_text_and_pictures_are_there(
    browser: Any, reports: dict[str, Path], kind: str
) -> None:
    with opened(browser, reports[kind], java_script_enabled=False) as found:
        assert found.page.locator(".still").first.is_visible()
        assert found.page.locator(".still svg path").first.get_attribute("d")
        assert not found.page.locator("button.copy").first.is_visible()
        assert not found.page.locator(".bokeh").first.is_visible()


@needs_charts
@pytest.mark.parametrize("kind", CHARTED)
def test_charts_take_the_place_of_the_pictures(
    browser: Any, reports: dict[str, Path], kind: str
) -> None:
    with opened(browser, reports[kind]) as found:
        assert found.page.locator(".bokeh canvas").first.is_visible()
        assert not found.page.locator(".still").first.is_visible()


@needs_charts
def test_pointing_at_a_chart_tells_what_was_there(browser: Any, reports: dict[str, Path]) -> None:
    with opened(browser, reports["run"]) as found:
        box = _chart(found.page)
        found.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        found.page.locator(".bk-tooltip-row-value").first.wait_for()

        said = found.page.locator(".bk-tooltip-content").all_text_contents()
        assert len(said) == 1
        assert "allocated: " in said[0]
        assert "17.00 GiB" in said[0]
        assert ACTING in said[0]


@needs_charts
@pytest.mark.parametrize("by", ["button", "dragging"])
def test_a_chart_can_be_zoomed_and_reset(browser: Any, reports: dict[str, Path], by: str) -> None:
    with opened(browser, reports["run"]) as found:
        whole = _range(found.page)
        if by == "button":
            found.page.get_by_title("Zoom In").first.click()
        else:
            box = _chart(found.page)
            found.page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] / 2)
            found.page.mouse.down()
            found.page.mouse.move(
                box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.6, steps=5
            )
            found.page.mouse.up()
        found.page.wait_for_timeout(200)
        near = _range(found.page)
        found.page.get_by_title("Reset").first.click()
        found.page.wait_for_timeout(200)

        assert near[1] - near[0] < (whole[1] - whole[0]) * 0.95
        assert _range(found.page) == whole


def _chart(page: Any) -> dict[str, float]:
    chart = page.locator(".bokeh").first
    chart.scroll_into_view_if_needed()
    box: dict[str, float] = chart.bounding_box()
    return box


def _range(page: Any) -> list[float]:
    found: list[float] = page.evaluate(
        "(() => { const r = Bokeh.documents[0].roots()[0].x_range; return [r.start, r.end]; })()"
    )
    return found


@needs_charts
def test_charts_change_their_colours_with_the_look(browser: Any, reports: dict[str, Path]) -> None:
    with opened(browser, reports["run"], color_scheme="light") as found:
        light = found.page.locator(".bokeh").first.screenshot()
        found.page.emulate_media(color_scheme="dark")
        found.page.wait_for_timeout(800)

        assert found.page.locator(".bokeh").first.screenshot() != light
        assert found.page.locator(".bokeh canvas").first.is_visible()


def test_a_flame_graph_is_zoomed_by_a_press_and_shows_all_again(
    browser: Any, reports: dict[str, Path]
) -> None:
    with opened(browser, reports["snapshot"]) as found:
        frame = found.page.locator(".frame", has_text="train.py:22").first
        before = frame.bounding_box()["width"]
        frame.click()
        zoomed = frame.bounding_box()["width"]
        found.page.get_by_role("button", name="Show all").click()

        assert zoomed > before * 3
        assert frame.bounding_box()["width"] == pytest.approx(before, abs=1)


def test_a_flame_graph_is_walked_by_keys_and_tells_each_call(
    browser: Any, reports: dict[str, Path]
) -> None:
    with opened(browser, reports["snapshot"]) as found:
        found.page.locator(".flame").focus()
        for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
            found.page.keyboard.press(key)
        told = found.page.locator(".told").text_content()
        found.page.keyboard.press("Enter")
        wide = found.page.locator(".frame.here").bounding_box()["width"]
        found.page.keyboard.press("Escape")

        assert "train.py" in told
        assert " in " in told
        assert wide > found.page.locator(".flame").bounding_box()["width"] * 0.95
        assert "all: " in found.page.locator(".told").text_content()


def test_a_patch_is_copied_row_for_row(browser: Any, reports: dict[str, Path]) -> None:
    with opened(
        browser, reports["run"], permissions=["clipboard-read", "clipboard-write"]
    ) as found:
        found.page.get_by_role("button", name="Open all").click()
        code = found.page.locator(".code").first
        expected = "\n".join(code.locator(".row").all_text_contents()) + "\n"
        code.get_by_role("button", name="Copy").click()
        found.page.get_by_role("button", name="Copied").wait_for()

        assert found.page.evaluate("navigator.clipboard.readText()") == expected


def test_everything_is_reached_by_the_keyboard(browser: Any, reports: dict[str, Path]) -> None:
    with opened(browser, reports["run-still"]) as found:
        reached = set()
        for _ in range(60):
            found.page.keyboard.press("Tab")
            reached.add(found.page.evaluate("document.activeElement.tagName"))
        summary = found.page.locator("details:not([open]) > summary").first.element_handle()
        summary.focus()
        found.page.keyboard.press("Enter")

        assert {"A", "BUTTON", "SUMMARY", "PRE"} <= reached
        assert summary.evaluate("one => one.parentElement.open")


@pytest.mark.parametrize("kind", CHARTED)
def test_paper_gets_the_still_pictures_and_all_that_is_folded(
    browser: Any, reports: dict[str, Path], kind: str
) -> None:
    with opened(browser, reports[kind], color_scheme="dark") as found:
        found.page.emulate_media(media="print", color_scheme="dark")
        found.page.evaluate("dispatchEvent(new Event('beforeprint'))")

        assert found.page.locator(".still").first.is_visible()
        assert not found.page.locator(".bokeh").first.is_visible()
        assert not found.page.locator("nav").first.is_visible()
        assert found.page.locator("details:not([open])").count() == 0
        ground = found.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(255, 255, 255)"
        assert len(found.page.pdf()) > 10_000
