"""`oomdoctor snapshot` as people type it."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING

import pytest

from tests.unit.snapshot.planted import MIB, Recorded, leak, train

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that leaks 8 MiB per step, and one that does not."""
    made: Path = tmp_path_factory.mktemp("snapshots")
    leaking = train(Recorded(), steps=12, extra=leak(8 * MIB)).snapshot()
    (made / "leak.pickle").write_bytes(pickle.dumps(leaking, protocol=4))
    innocent = train(Recorded(), steps=12).snapshot()
    (made / "innocent.json").write_text(json.dumps(innocent), encoding="utf-8")
    return made


def snapshot(run_python: RunPython, folder: Path, *arguments: str) -> CompletedProcess[bytes]:
    return run_python("-m", "oomdoctor", "snapshot", *arguments, cwd=folder)


def test_a_leak_is_a_finding(run_python: RunPython, folder: Path) -> None:
    done = snapshot(run_python, folder, "report", "leak.pickle")

    assert done.returncode == 1, done.stderr
    assert done.stdout.decode().startswith("leak.pickle\n  /home/me/train.py:22 in main keeps")


def test_an_innocent_run_is_none(run_python: RunPython, folder: Path) -> None:
    done = snapshot(run_python, folder, "report", "innocent.json", "-q")

    assert done.returncode == 0, done.stderr
    assert "No line keeps more and more" in done.stdout.decode()
    assert "What was held" not in done.stdout.decode()


@pytest.mark.parametrize(
    ("form", "start"), [("json", "{"), ("markdown", "## leak"), ("html", "<!doctype html>")]
)
def test_every_format_is_written(
    run_python: RunPython, folder: Path, form: str, start: str
) -> None:
    done = snapshot(run_python, folder, "report", "leak.pickle", "-f", form)

    assert done.returncode == 1, done.stderr
    assert done.stdout.decode().lower().startswith(start)


def test_what_is_no_snapshot_is_refused(run_python: RunPython, folder: Path) -> None:
    (folder / "none.pickle").write_bytes(b"cos\nsystem\n(S'true'\ntR.")

    done = snapshot(run_python, folder, "report", "none.pickle")

    assert done.returncode == 2
    assert "none.pickle: the pickle is no snapshot: instruction GLOBAL" in done.stderr.decode()
