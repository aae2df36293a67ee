"""What all tests share: golden files, and a clean command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
# what would change colour, width, language or completion of the command line under test
NOISE = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "PYTHONIOENCODING", "PYTHONUTF8", "LC_ALL")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update-golden, for use by hand; .ci/run never gives it."""
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files instead of comparing"
    )


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def updates_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def golden(request: pytest.FixtureRequest, updates_golden: bool) -> Callable[[str, str], None]:
    """Compare a text with a golden file beside the test, or write it with --update-golden."""

    def compare(name: str, text: str) -> None:
        path = request.path.parent / name
        if updates_golden:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        expected = path.read_text(encoding="utf-8") if path.exists() else "(no golden file)"
        assert expected == text, f"{path.name} differs; --update-golden writes it anew"

    return compare


def clean_environment() -> dict[str, str]:
    """Return an environment in which `python -m oomdoctor` runs this checkout, in plain UTF-8."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in NOISE and not key.startswith(("OOMDOCTOR", "_OOMDOCTOR", "COV_"))
    }
    return kept | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def run_python() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run this interpreter on the checkout: `run_python("-c", "...", cwd=..., stdin=b"...")`."""

    def run(
        *arguments: str,
        cwd: Path = ROOT,
        stdin: bytes = b"",
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=cwd,
            input=stdin,
            capture_output=True,
            env=clean_environment() | (environment or {}),
            timeout=120,
            check=False,
        )

    return run
