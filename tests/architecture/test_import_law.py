"""Who may import whom: the contracts of pyproject.toml, and what a start may load."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

LINT = """
import sys
from importlinter.cli import lint_imports
sys.exit(lint_imports(config_filename="pyproject.toml", no_cache=True))
"""
SPY = """
import json, sys
before = set(sys.modules)
from oomdoctor.cli.main import run
code = run(json.loads(sys.argv[1]))
print(json.dumps([code, sorted(set(sys.modules) - before)]), file=sys.stderr)
"""
LOG = "crash.log"
HELP = {"click", "oomdoctor"}
PLAIN = {"click", "oomdoctor", "regex", "_regex"}
WITH_YAML = PLAIN | {"yaml", "_yaml"}
# standard library parts that cost more than they give at start-up
BANNED = {
    "asyncio",
    "concurrent",
    "email",
    "http",
    "importlib.metadata",
    "multiprocessing",
    "sqlite3",
    "subprocess",
    "unittest",
    "urllib.request",
    "xml",
}


def loaded(run_python: RunPython, arguments: list[str], cwd: Path) -> tuple[int, list[str]]:
    done = run_python("-c", SPY, json.dumps(arguments), cwd=cwd)
    code, modules = json.loads(done.stderr.decode().splitlines()[-1])
    return code, modules


def foreign(modules: Iterable[str], stdlib: frozenset[str]) -> set[str]:
    tops = {name.partition(".")[0] for name in modules}
    compiled = {top for top in tops if top.startswith(("__", "_cython", "cython_runtime"))}
    return tops - stdlib - compiled


@pytest.fixture
def folder(tmp_path: Path, root: Path) -> Path:
    quickstart = root / "fixtures" / "quickstart"
    for name in (LOG, "train.yaml"):
        (tmp_path / name).write_bytes((quickstart / name).read_bytes())
    return tmp_path


def test_dependencies_point_one_way(run_python: RunPython) -> None:
    done = run_python("-c", LINT)

    assert done.returncode == 0, done.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["--help"], HELP),
        (["--version"], HELP),
        (["diagnose", "--help"], HELP),
        (["facts"], HELP),
        (["explain", "oom.requested"], HELP),
        (["explain", "logits-vocab-fp32"], HELP),
        (["diagnose", LOG], PLAIN),
        (["diagnose", LOG, "--format", "json"], PLAIN),
        (["diagnose", LOG, "--config", "train.yaml", "--next"], WITH_YAML | {"ruamel"}),
        (["lint", "--help"], HELP),
        (["watch", "--help"], HELP),
        (["lint", "train.yaml", "--fail-on", "never"], WITH_YAML | {"ruamel"}),
        (["lint", "train.yaml", "--fail-on", "never", "-f", "sarif"], WITH_YAML | {"ruamel"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_start_loads_only_what_it_needs(
    run_python: RunPython, folder: Path, arguments: list[str], allowed: set[str]
) -> None:
    code, modules = loaded(run_python, arguments, folder)

    assert code in (0, 4)
    assert foreign(modules, sys.stdlib_module_names) - allowed == set()
    assert BANNED & set(modules) == set()


def test_help_loads_no_rules_and_no_pipeline(run_python: RunPython, tmp_path: Path) -> None:
    _, modules = loaded(run_python, ["--help"], tmp_path)

    ours = {name for name in modules if name.startswith("oomdoctor.")}
    assert ours <= {
        "oomdoctor.cli",
        "oomdoctor.cli.exit_codes",
        "oomdoctor.cli.lazy",
        "oomdoctor.cli.main",
        "oomdoctor.errors",
        "oomdoctor.record",
    }


def test_importing_the_package_imports_no_part_of_it(run_python: RunPython) -> None:
    code = "import sys, oomdoctor; print(*(m for m in sys.modules if m.startswith('oomdoctor')))"

    done = run_python("-c", code)

    assert done.stdout.decode().split() == ["oomdoctor"]
