"""The hook of .pre-commit-hooks.yaml, installed by pre-commit from a clone and run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.packaging.scratch import BAD, GOOD, ROOT, environment, git, repository

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
# what an installation is made of
PARTS = ("oomdoctor", "rules", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")


def pre_commit(folder: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", *arguments, "--color=never"],
        cwd=folder,
        env=environment(PRE_COMMIT_HOME=str(home), PYTHONUTF8="1"),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of this checkout as it is, with a tag."""
    folder = tmp_path_factory.mktemp("clone")
    for name in PARTS:
        if (ROOT / name).is_dir():
            without = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=without)
        else:
            shutil.copy(ROOT / name, folder / name)
    repository(folder, {})
    git(folder, "tag", "v0")
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps what it has installed."""
    return tmp_path_factory.mktemp("home")


def checkout(folder: Path, clone: Path, files: dict[str, str], **hook: object) -> Path:
    config = {
        "repos": [
            {"repo": str(clone), "rev": "v0", "hooks": [{"id": "oomdoctor-lint", **hook}]},
        ]
    }
    return repository(folder, {**files, ".pre-commit-config.yaml": yaml.safe_dump(config)})


def test_a_mistake_stops_the_commit_with_its_place(tmp_path: Path, clone: Path, home: Path) -> None:
    folder = checkout(tmp_path, clone, {"conf/train.yaml": BAD, "package.json": "{}\n"})

    done = pre_commit(folder, home, "run", "--all-files")

    assert done.returncode == 1, done.stdout + done.stderr
    assert "conf/train.yaml:3:" in done.stdout
    assert "error COR2001 fp16-and-bf16:" in done.stdout


def test_a_good_config_passes(tmp_path: Path, clone: Path, home: Path) -> None:
    folder = checkout(tmp_path, clone, {"conf/train.yaml": GOOD, "package.json": "{}\n"})

    done = pre_commit(folder, home, "run", "--all-files")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout


def test_options_and_comments_hold_findings_back(tmp_path: Path, clone: Path, home: Path) -> None:
    held = BAD.replace("fp16: true", "fp16: true  # oomdoctor: ignore[COR2001] a test")
    files = {"a.yaml": held, "b.yaml": BAD, ".oomdoctor.toml": "[lint]\nignore = ['COR2001']\n"}

    folder = checkout(tmp_path, clone, files)

    assert pre_commit(folder, home, "run", "--all-files").returncode == 0


def test_the_manifest_is_valid(tmp_path: Path) -> None:
    done = pre_commit(ROOT, tmp_path, "validate-manifest", ".pre-commit-hooks.yaml")

    assert done.returncode == 0, done.stdout
