"""The golden cases of fixtures/cases, and what the tool says to each, asked once per session."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from oomdoctor.pipeline import diagnose
from oomdoctor.render.json import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CASES = Path(__file__).resolve().parents[2] / "fixtures" / "cases"
Said = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One folder of fixtures/cases: `logs` and `configs` are names of files in it."""

    name: str
    folder: Path
    about: str
    provenance: Mapping[str, str]
    truth: str
    said_by: str
    logs: tuple[str, ...]
    configs: tuple[str, ...]
    claims: Mapping[str, Any]
    known_gaps: Mapping[str, str]


def read_case(folder: Path) -> Case:
    held = yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8"))
    return Case(
        name=folder.name,
        folder=folder,
        about=held["about"],
        provenance=held["provenance"],
        truth=held["truth"]["cause"],
        said_by=held["truth"]["said_by"],
        logs=tuple(held["inputs"]["logs"]),
        configs=tuple(held["inputs"]["configs"]),
        claims=held["claims"],
        known_gaps=held.get("known_gaps", {}),
    )


@cache
def all_cases() -> tuple[Case, ...]:
    return tuple(read_case(path.parent) for path in sorted(CASES.glob("*/case.yaml")))


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, so that quotes and patches name files without a path."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def ask(folder: Path, logs: Sequence[str], configs: Sequence[str]) -> str:
    """Return what `oomdoctor diagnose LOGS --config CONFIGS --format json` prints there."""
    with inside(folder):
        return to_json(diagnose(list(logs), config=list(configs) or None))


@cache
def answer_to(name: str) -> str:
    case = read_case(CASES / name)
    return ask(case.folder, case.logs, case.configs)


@pytest.fixture
def cases() -> tuple[Case, ...]:
    """All golden cases."""
    return all_cases()


@pytest.fixture
def said_to() -> Callable[[str], Said]:
    """Return the JSON of a case, by its name."""
    return lambda name: json.loads(answer_to(name))


@pytest.fixture
def ask_in() -> Callable[[Path, Sequence[str], Sequence[str]], Said]:
    """Return the JSON for files of any folder."""
    return lambda folder, logs, configs: json.loads(ask(folder, logs, configs))


@pytest.fixture
def may_write(updates_golden: bool) -> bool:
    """Whether golden files are to be written; a build server never may."""
    if updates_golden and os.environ.get("CI", "").lower() not in ("", "0", "false"):
        pytest.fail("--update-golden is refused where CI is set: golden files are written by hand")
    return updates_golden


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test with an argument `case` each golden case.

    `known_gaps` in case.yaml names tests that the tool does not pass yet, with the reason: they
    are strict xfails, so that a gap is visible and closes itself.
    """
    if "case" not in metafunc.fixturenames:
        return
    test = metafunc.function.__name__
    metafunc.parametrize(
        "case",
        [
            pytest.param(
                case,
                id=case.name,
                marks=[pytest.mark.xfail(reason=case.known_gaps[test], strict=True)]
                if test in case.known_gaps
                else [],
            )
            for case in all_cases()
        ],
    )
