"""Broken jobs of three files each: what lint finds in them, and what its fixes leave over.

`fixtures/jobs/<name>/expected.json` holds the findings as `[path, line, severity, rule]` before
any fix, after the safe ones, and after all; `--update-golden` writes it anew.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oomdoctor.linting import versions
from oomdoctor.linting.files import paths_in, read_file
from oomdoctor.linting.fixing import SAFE, UNSAFE, fixed
from oomdoctor.linting.run import Wanted, lint
from oomdoctor.model.enums import Safety, Severity

if TYPE_CHECKING:
    from oomdoctor.linting.fixing import Fixed
    from oomdoctor.model.lint import LintReport

JOBS = Path(__file__).resolve().parents[2] / "fixtures" / "jobs"
NAMES = sorted(path.name for path in JOBS.iterdir() if path.is_dir())
CARDS = {"vllm-too-long": "RTX 4090"}
EXPECTED = "expected.json"


def wanted(name: str) -> Wanted:
    return Wanted(together=True, gpu=CARDS.get(name, "A100-80GB"))


@pytest.fixture
def job(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = str(request.param)
    ignored = shutil.ignore_patterns(EXPECTED)
    shutil.copytree(JOBS / name, tmp_path / "job", ignore=ignored)
    monkeypatch.chdir(tmp_path / "job")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):  # versions come from the job's own files
        monkeypatch.delenv(variable, raising=False)
    versions.forget()
    return name


def rows(report: LintReport) -> list[list[object]]:
    return [
        [file.path.removeprefix("./"), one.line, one.severity.value, one.rule]
        for file in sorted(report.files, key=lambda file: file.path)
        for one in file.findings
    ]


def fixed_job(name: str, allowed: frozenset[Safety]) -> Fixed:
    files = [read_file(path) for path in paths_in(["."])]
    return fixed(files, wanted(name), allowed=allowed)


@pytest.mark.parametrize("job", NAMES, indirect=True)
def test_a_broken_job_gets_the_findings_that_it_deserves(
    job: str, request: pytest.FixtureRequest
) -> None:
    found = {
        "found": rows(lint(["."], wanted(job))),
        "after_fix": rows(fixed_job(job, SAFE).report),
        "after_unsafe": rows(fixed_job(job, UNSAFE).report),
    }
    path = JOBS / job / EXPECTED
    if request.config.getoption("--update-golden"):
        text = "{\n" + ",\n".join(
            f' "{name}": [\n  ' + ",\n  ".join(json.dumps(row) for row in part) + "\n ]"
            for name, part in found.items()
        )
        path.write_text(f"{text}\n}}\n", encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")) == found
    assert any(row[2] in ("error", "warning") for row in found["found"])


@pytest.mark.parametrize("job", NAMES, indirect=True)
def test_fixing_leaves_nothing_that_a_safe_patch_would_cure(job: str) -> None:
    left = [
        (finding.rule, fix.fix_id)
        for finding in fixed_job(job, SAFE).report.findings
        for fix in finding.fixes
        if fix.safety is Safety.SAFE and any(patch.file for patch in fix.patches)
    ]
    assert left == []


@pytest.mark.parametrize("job", NAMES, indirect=True)
def test_after_all_fixes_only_what_needs_a_person_is_an_error(job: str) -> None:
    left = [
        finding.rule
        for finding in fixed_job(job, UNSAFE).report.findings
        if finding.severity is Severity.ERROR
        and any(patch.file for fix in finding.fixes for patch in fix.patches)
    ]
    assert left == []


def test_there_are_ten_jobs_of_three_files() -> None:
    counts = {
        name: sum(path.is_file() and path.name != EXPECTED for path in (JOBS / name).rglob("*"))
        for name in NAMES
    }
    assert len(NAMES) >= 10
    assert dict.fromkeys(NAMES, 3) == counts
