"""A headless Chromium, and reports of every kind as files that it opens."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.reports import REPORTS

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WHERE = "OOMDOCTOR_CHROMIUM"


def _chromium() -> str | None:
    """Return the browser that is named or installed; None where playwright has its own, or none."""
    named = os.environ.get(WHERE)
    return named or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A browser without a screen; skipped where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (pip install playwright)"
    )
    with playwright.sync_playwright() as session:
        path = _chromium() or session.chromium.executable_path
        if not Path(path).exists():
            pytest.skip(f"there is no chromium: install it, or name it in {WHERE}")
        made = session.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The script that looks for barriers; skipped where it is not installed."""
    found = find_spec("axe_playwright_python")
    if found is None or not found.submodule_search_locations:
        pytest.skip("axe is not installed (pip install axe-playwright-python)")
    return (Path(found.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every kind of report as a file; those named `-still` have no charts of the library."""
    folder = tmp_path_factory.mktemp("reports")
    made = {}
    for name, make in REPORTS.items():
        for still in (False, True):
            path = folder / f"{name}{'-still' if still else ''}.html"
            path.write_text(make(still=still), encoding="utf-8")
            made[path.stem] = path
    return made
