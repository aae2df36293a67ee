"""Run tests/proofs in this environment and record which lint rules they prove, with versions.

    python tools/record_proofs.py            runs all, writes oomdoctor/tables/proofs.json
    python tools/record_proofs.py -k packing runs some; the others' records stay

Proofs of libraries that are missing here are skipped; what was recorded of them stays.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "proofs"
TABLE = ROOT / "oomdoctor" / "tables" / "proofs.json"
# modules of which we name the version, by what is imported
LIBRARIES = {
    **{name: name for name in ("transformers", "trl", "peft", "accelerate", "torch")},
    **{name: name for name in ("bitsandbytes", "deepspeed", "lightning", "wandb", "torchtune")},
    **{name: name for name in ("axolotl", "llamafactory", "datasets", "tokenizers")},
    "recipes": "torchtune",
}
# what only carries the samples says nothing about the rule
_CARRIERS = {"datasets", "tokenizers"}


class Proving(NamedTuple):
    """A test function of the proofs: where it is, what it proves, what it needs."""

    name: str
    rules: tuple[str, ...]
    claim: str
    libraries: frozenset[str]


class Module:
    """A file of tests/proofs, with the libraries that each of its functions reaches."""

    def __init__(self, path: Path) -> None:
        """Parse the file; helpers imported from neighbours count with what they reach."""
        self.path = path
        tree = ast.parse(path.read_text(encoding="utf-8"))
        kinds = (ast.FunctionDef, ast.ClassDef)
        self.definitions = {node.name: node for node in tree.body if isinstance(node, kinds)}
        self.names: dict[str, frozenset[str]] = {}
        for node in tree.body:
            self.names |= _bound(node)

    def reached(self, name: str, seen: frozenset[str] = frozenset()) -> frozenset[str]:
        """Return the libraries that a name of this file stands for or uses."""
        found = self.names.get(name, frozenset())
        if name not in self.definitions or name in seen:
            return found
        node = self.definitions[name]
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                found |= self.reached(inner.id, seen | {name})
            elif isinstance(inner, ast.arg):
                found |= self.reached(inner.arg, seen | {name})
            elif isinstance(inner, ast.Constant) and inner.value in self.definitions:
                found |= self.reached(str(inner.value), seen | {name})
            found |= _imported(inner)
        return found

    def tests(self) -> list[Proving]:
        """Return the tests of this file that prove a rule."""
        found = []
        for name, node in self.definitions.items():
            rules = _rules(node)
            if name.startswith("test_") and rules:
                where = f"{self.path.relative_to(ROOT).as_posix()}::{name}"
                claim = " ".join((ast.get_docstring(node) or "").split())
                found.append(Proving(where, rules, claim, self.reached(name) - _CARRIERS))
        return found


def _bound(node: ast.stmt) -> dict[str, frozenset[str]]:
    """Return the names that a statement binds to libraries or to helpers of a neighbour."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.proofs."):
        other = Module(FOLDER / f"{(node.module or '').rpartition('.')[2]}.py")
        return {alias.name: other.reached(alias.name) for alias in node.names}
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        inside = frozenset[str]().union(*(_imported(inner) for inner in ast.walk(node)))
        return {node.targets[0].id: inside} if inside else {}
    return {}


def _imported(node: ast.AST) -> frozenset[str]:
    """Return the library of an import statement or of an importorskip call."""
    modules: list[str] = []
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        modules = [node.module or ""]
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "importorskip":
        modules = [str(a.value) for a in node.args if isinstance(a, ast.Constant)]
    roots = (name.partition(".")[0] for name in modules)
    return frozenset(LIBRARIES[root] for root in roots if root in LIBRARIES)


def _rules(node: ast.FunctionDef | ast.ClassDef) -> tuple[str, ...]:
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "proves":
            return tuple(str(a.value) for a in mark.args if isinstance(a, ast.Constant))
    return ()


def all_tests() -> list[Proving]:
    """Return every proving test, in the order of files and lines."""
    return [test for path in sorted(FOLDER.glob("test_*.py")) for test in Module(path).tests()]


def run(arguments: list[str]) -> tuple[int, dict[str, bool]]:
    """Run the proofs; return pytest's code and for each test that ran whether all of it passed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-n", "0", "-m", "proofs", str(FOLDER)]
        options = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments]
        code = subprocess.run([*command, *options], cwd=ROOT, check=False).returncode
        cases = ET.parse(report).getroot().iter("testcase")  # noqa: S314 - pytest's own file
        passed: dict[str, bool] = {}
        for case in cases:
            if case.find("skipped") is None:
                name = case.attrib["classname"].replace(".", "/") + ".py::"
                name += case.attrib["name"].partition("[")[0]
                passed[name] = passed.get(name, True) and len(case.findall("failure")) == 0
        return code, passed


@cache
def installed() -> dict[str, str]:
    """Return the version of every package of this environment."""
    return {one.name.lower(): one.version for one in distributions()}


def versions(libraries: frozenset[str]) -> dict[str, str]:
    """Return the versions installed here, without build tags such as `+cpu`."""
    there = installed()
    return {name: there[name].partition("+")[0] for name in sorted(libraries & there.keys())}


Table = dict[str, list[dict[str, object]]]


def merged(old: Table, tests: list[Proving], passed: dict[str, bool]) -> Table:
    """Return the table with what passed here; of tests that did not run, what was there."""
    before = {(rule, row["test"]): row for rule, rows in old.items() for row in rows}
    table: Table = {}
    for test in tests:
        for rule in test.rules:
            row = before.get((rule, test.name))
            if test.name in passed:
                fresh = {"versions": versions(test.libraries), "claim": test.claim}
                row = {"test": test.name, **fresh} if passed[test.name] else None
            if row is not None:
                table.setdefault(rule, []).append(row)
    return dict(sorted(table.items()))


def main() -> int:
    """Run, merge with what is recorded, write; the code is pytest's."""
    code, passed = run(sys.argv[1:])
    old = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    table = merged(old, all_tests(), passed)
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print(
        f"{len(table)} rules proven by {len({r['test'] for v in table.values() for r in v})} tests"
    )
    return code


if __name__ == "__main__":
    sys.exit(main())
