"""Console blocks of the README are run and compared; generated files are not stale.

Blocks marked ```console hold `$ oomdoctor ...` lines with what they print. Blocks marked ```sh are
for typing (installing) and are not run here.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?ms)^```console\n(.*?)^```$")
LINK = re.compile(r"\[[^]]*\]\((?!https?:|#|mailto:)([^)#]+)(?:#[^)]*)?\)")


class Step(NamedTuple):
    """A command of a console block and what is printed below it."""

    place: str
    command: str
    expected: str


def steps() -> Iterator[Step]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            line = text[: block.start()].count("\n") + 1
            for part in re.split(r"(?m)^\$ ", block[1])[1:]:
                command, _, expected = part.partition("\n")
                yield Step(f"{page.name}:{line}", command, expected)


STEPS = list(steps())


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step.place} {step.command}")
def test_a_console_block_shows_what_is_printed(step: Step, run_python: RunPython) -> None:
    program, *arguments = shlex.split(step.command)
    assert program == "oomdoctor"

    done = run_python("-m", "oomdoctor", *arguments)

    assert step.expected == done.stdout.decode() + done.stderr.decode()


def test_the_readme_shows_the_quick_start() -> None:
    commands = [step.command for step in STEPS if step.place.startswith("README.md")]

    assert any("fixtures/quickstart/crash.log" in command for command in commands)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    dead = [link for link in LINK.findall(text) if not (page.parent / link).exists()]

    assert dead == []


def test_the_bundle_is_what_the_rules_compile_to(run_python: RunPython) -> None:
    done = run_python("-m", "oomdoctor", "rules", "bundle", "--check")

    assert done.returncode == 0, "`oomdoctor rules bundle` writes it anew"


def test_the_published_schema_is_current(run_python: RunPython, root: Path) -> None:
    done = run_python("-m", "oomdoctor", "rules", "schema")

    held = (root / "rules" / "schema" / "rule.schema.json").read_text(encoding="utf-8")
    assert held == done.stdout.decode()
