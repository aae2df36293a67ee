"""The wheel holds all that is needed, and works in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True, timeout=600)
    return next(folder.glob("oomdoctor-*.whl"))


def test_rules_bundle_and_tables_are_in_the_wheel(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    rules = {
        f"oomdoctor/_rules/{path.relative_to(ROOT / 'rules').as_posix()}"
        for path in (ROOT / "rules").rglob("*")
        if path.is_file()
    }
    tables = {
        f"oomdoctor/tables/{path.name}" for path in (ROOT / "oomdoctor/tables").glob("*.json")
    }
    wanted = {*rules, *tables, "oomdoctor/_rules/bundle.json", "oomdoctor/py.typed"}
    assert wanted - names == set()


def test_tests_and_fixtures_are_not_in_the_wheel(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert [name for name in names if name.startswith(("tests/", "fixtures/", "tools/"))] == []


def test_an_installed_oomdoctor_diagnoses(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    program = tmp_path / "venv" / "bin" / "oomdoctor"
    pip = [str(tmp_path / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, str(wheel)], check=True, timeout=600)
    quickstart = ROOT / "fixtures" / "quickstart"

    done = subprocess.run(
        [
            program,
            "diagnose",
            quickstart / "crash.log",
            "--config",
            quickstart / "train.yaml",
            "--format=json",
        ],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert done.stderr == b""
    assert json.loads(done.stdout)["causes"][0]["cause"] == "logits-vocab-fp32"
