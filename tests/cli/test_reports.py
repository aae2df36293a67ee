"""Answers as pages of one file, from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.render.reading_html import read_html

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    RunPython = Callable[..., subprocess.CompletedProcess[bytes]]

CRASH = ("fixtures/quickstart/crash.log", "--config", "fixtures/quickstart/train.yaml")


def test_a_diagnosis_is_written_as_a_page(run_python: RunPython, tmp_path: Path) -> None:
    path = tmp_path / "report.html"

    done = run_python("-m", "oomdoctor", "diagnose", *CRASH, "-f", "html", "-o", str(path))

    assert (done.returncode, done.stdout) == (0, b"")
    found = read_html(path.read_text(encoding="utf-8"))
    for word in ("cause found", "logits-vocab-fp32", "+use_liger_kernel: true", "23.64 GiB"):
        assert word in found.text


@pytest.mark.parametrize(("flags", "shown"), [([], False), (["--no-redact"], True)])
def test_a_page_has_names_only_where_they_are_asked_for(
    run_python: RunPython, tmp_path: Path, flags: list[str], shown: bool
) -> None:
    log = tmp_path / "crash.log"
    log.write_text(
        'File "/home/erika.mustermann/train.py", line 3, in main\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n",
        encoding="utf-8",
    )

    done = run_python("-m", "oomdoctor", "diagnose", str(log), "-f", "html", *flags)

    page = done.stdout.decode()
    assert "Tried to allocate 2.00 GiB" in read_html(page).text
    assert ("mustermann" in page) is shown


def test_a_lint_report_is_written_as_a_page(run_python: RunPython) -> None:
    done = run_python("-m", "oomdoctor", "lint", "fixtures/lint/train.yaml", "-f", "html")

    found = read_html(done.stdout.decode())
    assert "fixtures/lint/train.yaml" in found.text
    assert [one for one in found.all("button") if "copy" in (one.get("class") or "")]
