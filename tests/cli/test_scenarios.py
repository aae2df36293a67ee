"""Command lines with what they print: one file each in scenarios/.

A scenario is text in parts. Each part starts with a line `--- NAME`:

    --- command          one command line; $ is the shell's prompt and may be left out
    --- file NAME        a file that lies in the working directory
    --- stdin            what the command reads
    --- env NAME=VALUE   an environment variable (no body)
    --- exit             the exit code
    --- stdout           what it prints, compared line by line
    --- stderr           likewise

An expected line `/.../` is a regular expression, for times and paths only. --update-golden writes
exit, stdout and stderr anew.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

FOLDER = Path(__file__).parent / "scenarios"
SCENARIOS = sorted(FOLDER.glob("*.scenario"))
RESULTS = ("exit", "stdout", "stderr")
MARK = "--- "


@dataclass
class Scenario:
    """The parts of a scenario file."""

    head: str = ""
    command: str = ""
    stdin: str = ""
    files: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    expected: dict[str, str] = field(default_factory=dict)


def read(path: Path) -> Scenario:
    scenario = Scenario()
    name, body = "", []
    for line in [*path.read_text(encoding="utf-8").split("\n"), f"{MARK}end"]:
        if not line.startswith(MARK):
            body.append(line)
            continue
        _store(scenario, name, "\n".join(body))
        name, body = line.removeprefix(MARK), []
    return scenario


def _store(scenario: Scenario, name: str, body: str) -> None:
    kind, _, rest = name.partition(" ")
    text = f"{body}\n" if body else ""
    if kind == "":
        scenario.head = text
    elif kind == "file":
        scenario.files[rest] = text
    elif kind == "env":
        key, _, value = rest.partition("=")
        scenario.environment[key] = value
    elif kind == "command":
        scenario.command = body.strip().removeprefix("$").strip()
    elif kind == "stdin":
        scenario.stdin = text
    elif kind in RESULTS:
        scenario.expected[kind] = text
    else:
        raise ValueError(f"unknown part {name!r}")


def differs(expected: str, actual: str) -> bool:
    wanted, got = expected.split("\n"), actual.split("\n")
    return len(wanted) != len(got) or any(
        not _line_matches(one, other) for one, other in zip(wanted, got, strict=True)
    )


def _line_matches(expected: str, actual: str) -> bool:
    if len(expected) > 1 and expected.startswith("/") and expected.endswith("/"):
        return re.fullmatch(expected[1:-1], actual) is not None
    return expected == actual


def rewrite(path: Path, actual: dict[str, str]) -> None:
    """Write the results of a run into its scenario, below the parts that are its input."""
    text = path.read_text(encoding="utf-8")
    inputs = re.split(r"(?m)^--- (?:exit|stdout|stderr)$", text)[0]
    results = "".join(f"--- {name}\n{actual[name]}" for name in RESULTS)
    path.write_text(inputs + results.removesuffix("\n"), encoding="utf-8", newline="\n")


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_command_line_does_what_its_scenario_says(
    path: Path,
    root: Path,
    tmp_path: Path,
    run_python: RunPython,
    updates_golden: bool,
) -> None:
    scenario = read(path)
    for name, text in scenario.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8", newline="\n")
    if "fixtures/" in scenario.command:
        (tmp_path / "fixtures").symlink_to(root / "fixtures")
    program, *arguments = shlex.split(scenario.command)
    assert program == "oomdoctor"

    done = run_python(
        "-m",
        "oomdoctor",
        *arguments,
        cwd=tmp_path,
        stdin=scenario.stdin.encode(),
        environment=scenario.environment,
    )

    actual = {
        "exit": f"{done.returncode}\n",
        "stdout": done.stdout.decode(),
        "stderr": done.stderr.decode(),
    }
    wrong = {key for key in RESULTS if differs(scenario.expected.get(key, ""), actual[key])}
    if updates_golden and wrong:
        rewrite(path, actual)
        return
    assert {key: scenario.expected.get(key, "") for key in wrong} == {
        key: actual[key] for key in wrong
    }


def test_there_are_scenarios() -> None:
    assert SCENARIOS != []
