"""The figures that batch systems state about a job are read to the bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import job_accounts
from tests.unit.evidence.tables_documents import GIB, MIB, read_raw, read_text, values

if TYPE_CHECKING:
    from oomdoctor.model.core import Value

KIB = 1024


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sacct.txt", {"host.group_limit": 48 * GIB, "host.group_used": 50102244 * KIB}),
        ("sacct_parsable.txt", {"host.group_limit": 48 * GIB, "host.group_used": 50102244 * KIB}),
        ("seff.txt", {"host.group_limit": 48 * GIB, "host.group_used": round(47.75 * GIB)}),
        (
            "slurm_exceeded.txt",
            {"host.group_limit": 50331648 * KIB, "host.group_used": 52917772 * KIB},
        ),
    ],
)
def test_limit_and_peak_of_a_job_are_read(name: str, expected: dict[str, Value]) -> None:
    assert expected == values(read_raw(job_accounts, "host", name))


def test_pbs_counts_kilobytes() -> None:
    text = "=>> PBS: job killed: mem 2097152kb exceeded limit 1048576kb"
    found = values(read_text(job_accounts, text))
    assert found == {"host.group_used": 2 * GIB, "host.group_limit": GIB}


def test_memory_per_cpu_is_no_limit_of_the_job() -> None:
    text = "JobID|ReqMem|MaxRSS\n7|4Gc|1024K"
    assert values(read_text(job_accounts, text)) == {"host.group_used": MIB}


def test_prose_about_the_columns_is_no_table() -> None:
    text = "we compare MaxRSS with ReqMem, see below\n12 34K 56G"
    assert read_text(job_accounts, text).facts == ()
