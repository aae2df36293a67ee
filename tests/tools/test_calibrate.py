"""The calibration of a folder of labelled cases: bins, shares, answers, Brier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tools import calibrate
from tools.calibrate import Outcome

if TYPE_CHECKING:
    from pathlib import Path

KILLED = (
    "[  99.1] Out of memory: Killed process 4711 (python3) total-vm:9000000kB,"
    " anon-rss:8000000kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:1kB oom_score_adj:0"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cases = [
        {
            "id": "a",
            "tier": "core",
            "answer": "not_gpu_oom",
            "cause": "host-ram-exhausted",
            "log": KILLED,
        },
        {
            "id": "b",
            "tier": "core",
            "answer": "not_gpu_oom",
            "cause": "shm-too-small",
            "also_accept": ["host-ram-exhausted"],
            "log": KILLED,
        },
        {
            "id": "c",
            "tier": "extra",
            "answer": "need_evidence",
            "cause": "undetermined",
            "log": "step 1 loss 2.0",
        },
        {"id": "d", "tier": "stub", "answer": "cause", "cause": "fragmentation", "log": "x"},
    ]  # fmt: skip - one case per line
    for case in cases:
        (tmp_path / f"{case['id']}.yaml").write_text(yaml.safe_dump(case))
    return tmp_path


def made(probability: float, *, right: bool, cause: str = "fragmentation") -> Outcome:
    return Outcome("n", "cause", "cause", cause, probability, right, known=True, brier=0.25)


def test_stubs_are_left_out_unless_asked_for(folder: Path) -> None:
    assert [case["id"] for case in calibrate.cases_in(folder)] == ["a", "b", "c"]
    assert len(list(calibrate.cases_in(folder, stubs=True))) == 4


def test_a_cause_that_is_accepted_as_well_is_right(folder: Path) -> None:
    found = [calibrate.outcome(case) for case in calibrate.cases_in(folder)]

    assert [(one.cause, one.right, one.known) for one in found] == [
        ("host-ram-exhausted", True, True),
        ("host-ram-exhausted", True, True),
        ("", False, False),
    ]
    assert found[0].brier == pytest.approx((1 - found[0].probability) ** 2)


def test_each_bin_states_count_mean_and_share() -> None:
    outcomes = [
        made(0.62, right=True),
        made(0.70, right=False),
        made(0.85, right=True),
        made(1.0, right=True),
        made(0.0, right=False, cause=""),
    ]

    lines = calibrate.table(outcomes).split("\n")

    assert "| 0.6 to 0.8 | 2 | 0.66 | 0.50 | 0.09 to 0.91 |" in lines
    assert "| 0.9 to 1 | 1 | 1.00 | 1.00 | 0.21 to 1.00 |" in lines
    assert "| **0.6 to 0.9, pooled** | 3 | 0.72 | 0.67 | 0.21 to 0.94 |" in lines
    assert "| 0 to 0.2 | 0 | | | |" in lines
    assert "| all | 4 | 0.79 | 0.75 | 0.30 to 0.95 |" in lines


def test_the_page_counts_answers_and_states_the_score(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calibrate.main([str(folder)])
    page = capsys.readouterr().out

    assert page.startswith("3 cases, 2 with a known cause, 0 of them without a named cause. Brier")
    assert "| expert \\ tool | not_gpu_oom | nothing_found |" in page
    assert "| not_gpu_oom | 2 |  |" in page
    assert "| need_evidence |  | 1 |" in page


def test_a_folder_without_cases_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        calibrate.main([str(tmp_path)])
