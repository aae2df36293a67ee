"""Programs run on virtual cards, and what came of them is told."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from oomdoctor.virtual import run as running
from oomdoctor.virtual.card import VirtualCard
from oomdoctor.virtual.run import run_python

if TYPE_CHECKING:
    from pathlib import Path

CARD = VirtualCard(name="a card", total_bytes=8 << 30, capability=(8, 0), processors=108)


@pytest.fixture(autouse=True)
def _nothing_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Programs here need no card, so that none is built."""
    monkeypatch.setattr(running, "site_packages_of", lambda _: tmp_path)
    monkeypatch.setattr(running, "build", lambda site, **_: site)
    plain = {"LD_PRELOAD": ""}
    real = running.environment_of
    monkeypatch.setattr(running, "environment_of", lambda *a, **k: {**real(*a, **k), **plain})


def test_output_and_exit_code_are_the_programs() -> None:
    code = "import sys, os; print(os.environ['OOMDOCTOR_VIRTUAL_NAME']); sys.exit(3)"

    done = run_python(["-c", code], card=CARD)

    assert (done.exit_code, done.output.strip()) == (3, "a card")


def test_what_was_not_modelled_is_told() -> None:
    code = "import os; open(os.environ['OOMDOCTOR_VIRTUAL_LOG'], 'a').write('refused cudaOne\\n')"

    assert run_python(["-c", code], card=CARD).unmodelled.refused == ("cudaOne",)


def test_a_program_that_does_not_end_is_stopped_with_its_children() -> None:
    code = (
        "import subprocess, sys, time; print('begun', flush=True);"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); time.sleep(60)"
    )

    done = run_python(["-c", code], card=CARD, timeout_s=3, python=sys.executable)

    assert (done.exit_code, done.output.strip()) == (None, "begun")
