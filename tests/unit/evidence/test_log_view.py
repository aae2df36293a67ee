"""The place of a log in its job: rank, machine, time, ending, the launcher's table."""

from __future__ import annotations

import pytest

from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.log_view import LogView, view_of, with_near_stamps
from oomdoctor.evidence.readers import read_all
from oomdoctor.evidence.source import source_of_text

TABLE = """\
Other Failures:
[1]:
  time      : 2026-11-30_08:30:47
  host      : gpu07
  rank      : 2 (local_rank: 2)
  exitcode  : -15 (pid: 4712)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-30_08:30:45
  host      : gpu07
  rank      : 5 (local_rank: 5)
  exitcode  : 1 (pid: 4711)
============================================================
"""


def view(text: str) -> LogView:
    return view_of(clean(source_of_text(text)))


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("LOCAL_RANK=3", 3),
        ("args: local_rank: 2, seed: 1", 2),
        ("Initialized rank 6 of 8", 6),
        ("local_rank=1, RANK=9", 9),
        ("rank=0\nrank=1", None),
        ("failed (exitcode: 1) local_rank: 5 (pid: 77) of binary: python", None),
        ("ranking 3 of 8", None),
        ("LoRA lora_rank=16", None),
    ],
)
def test_a_text_names_its_own_rank(text: str, rank: int | None) -> None:
    assert rank == view(text).told_rank


def test_the_launchers_table_names_the_first_rank_to_fail() -> None:
    found = view(TABLE).blamed

    assert [(one.rank, one.root, one.exit_code) for one in found] == [(2, False, -15), (5, True, 1)]


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("step 1\nSignalException: Process 41 got signal: 15", "terminated"),
        ("step 1\nKilled", "killed"),
        ("step 1\nKeyboardInterrupt", "interrupted"),
        ("{'train_runtime': 12.5}", "finished"),
        ("step 1\nSending process 41 closing signal SIGTERM", ""),
        ("step 1", ""),
    ],
)
def test_the_last_lines_say_how_a_log_ends(text: str, ending: str) -> None:
    assert ending == view(text).ending


def test_a_line_with_both_clocks_says_when_the_machine_booted() -> None:
    found = view("Nov 30 08:30:45 gpu07 kernel: [  45.500000] usb 1-1: new device").boots

    assert found is not None
    assert (found.clock, found.seconds % 60) == ("yearless", 59.5)


def test_a_table_of_cards_says_when_it_was_made() -> None:
    found = view("Mon Nov 30 08:30:45 2026\n+---+\n| NVIDIA-SMI 550.90.07 |\n").taken

    assert found is not None
    assert found.clock == "date"


def test_a_failure_without_a_stamp_gets_the_nearest_one_before_it() -> None:
    text = (
        "2026-11-30 08:30:40,001 step 1\n"
        "2026-11-30 08:30:45,002 step 2\n"
        "torch.OutOfMemoryError: CUDA out of memory.\n"
        "2026-11-30 08:31:00,003 cleaning up\n"
    )
    document = clean(source_of_text(text))

    failures = with_near_stamps(document, read_all(document).failures)

    assert [(one.stamp, one.near) for one in failures] == [(None, "2026-11-30 08:30:45,002")]


def test_the_size_of_the_job_is_read() -> None:
    assert view("rank: 3, world_size: 8").world == 8
