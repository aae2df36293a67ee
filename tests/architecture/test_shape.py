"""The shape of the code: sizes of files and functions, docstrings, suppressions."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
LONGEST_FILE = 300
LONGEST_FUNCTION = 50
SUPPRESSION = re.compile(r"#\s*(noqa|type:\s*ignore)(?P<what>[^#]*)")
WITH_REASON = re.compile(r"^(: ?[A-Z0-9, ]+|\[[a-z, -]+\]) - \S")
# a suppression more needs a look at why it cannot be avoided, and then a new number here
MOST_SUPPRESSIONS = {
    "oomdoctor": 47,
    # stands in for torch's and other libraries' parts, whose signatures are not ours to choose
    "oomdoctor/worker": 24,
    "oomdoctor/virtual/hooks": 3,
    "oomdoctor/virtual/inside": 4,
    "oomdoctor/inject": 8,
    "tests": 44,
    "benchmarks": 5,
    "tools": 4,
}


def sources(*folders: str) -> list[Path]:
    return sorted(path for name in folders for path in (ROOT / name).rglob("*.py"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


PACKAGE = sources("oomdoctor")
EVERYTHING = sources("oomdoctor", "tests", "benchmarks", "tools")


@pytest.mark.parametrize("path", EVERYTHING, ids=relative)
def test_a_file_has_at_most_300_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", EVERYTHING, ids=relative)
def test_a_function_has_at_most_50_lines(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))

    long = [
        (node.name, node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (node.end_lineno or node.lineno) - node.lineno + 1 > LONGEST_FUNCTION
    ]

    assert long == []


@pytest.mark.parametrize("path", PACKAGE, ids=relative)
def test_digits_are_those_that_a_number_can_be_read_from(path: Path) -> None:
    # a superscript is a digit, and int() fails on it
    assert "isdigit" not in path.read_text(encoding="utf-8"), "use isdecimal"


@pytest.mark.parametrize("path", PACKAGE, ids=relative)
def test_public_names_have_docstrings(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))

    assert undocumented(tree) == []


def _is_public_class(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and not node.name.startswith("_")


def undocumented(tree: ast.Module) -> list[str]:
    if not tree.body:
        return []
    missing = [] if ast.get_docstring(tree) else ["the module"]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for owner in [tree, *(node for node in tree.body if _is_public_class(node))]:
        for node in owner.body:
            if isinstance(node, kinds) and not node.name.startswith("_"):
                missing += [] if ast.get_docstring(node) else [node.name]
    return missing


def suppressions(path: Path) -> Iterator[tuple[str, str]]:
    text = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        found = SUPPRESSION.search(token.string) if token.type == tokenize.COMMENT else None
        if found:
            yield f"{relative(path)}:{token.start[0]}", found["what"].strip()


@pytest.mark.parametrize("path", EVERYTHING, ids=relative)
def test_a_suppression_names_its_rule_and_its_reason(path: Path) -> None:
    bare = [where for where, what in suppressions(path) if not WITH_REASON.match(what)]

    assert bare == []


@pytest.mark.parametrize("folder", MOST_SUPPRESSIONS)
def test_suppressions_are_counted(folder: str) -> None:
    within = [ROOT / one for one in MOST_SUPPRESSIONS if one.startswith(f"{folder}/")]
    paths = (path for path in sources(folder) if not any(map(path.is_relative_to, within)))
    found = [where for path in paths for where, _ in suppressions(path)]

    assert len(found) <= MOST_SUPPRESSIONS[folder], "\n".join(found)
