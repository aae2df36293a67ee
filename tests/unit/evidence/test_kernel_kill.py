"""Kernel reports of every age are read to the bytes: victim, limit, use, table of processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import kernel_kill
from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.kernel_tasks import rows_of, summed
from oomdoctor.evidence.source import source_of_text
from tests.unit.evidence.documents import raw_text
from tests.unit.evidence.tables_documents import GIB

if TYPE_CHECKING:
    from oomdoctor.model.core import Document, Value

KIB = 1024
PAGE = 4096


def cleaned(text: str) -> Document:
    return clean(source_of_text(text))


def read(name: str) -> dict[str, Value]:
    reading = kernel_kill.read(cleaned(raw_text("host", name)))
    return {fact.key: fact.value for fact in reading.facts}


REPORTS: dict[str, dict[str, Value]] = {
    "kernel_3_10_group.txt": {
        "host.kill_scope": "group",
        "host.victim": "python",
        "host.victim_pid": 30211,
        "host.victim_total": 21241772 * KIB,
        "host.victim_anonymous": 20800000 * KIB,
        "host.victim_files": 400 * KIB,
        "host.victim_shared": 0,
        "host.victim_resident": 20800400 * KIB,
        "host.kill_caller": "python",
        "host.kill_order": 0,
        "host.group_path": "/slurm/uid_5012/job_70311",
        "host.group_limit": 40 * GIB,
        "host.group_used": 40 * GIB,
        "host.group_failures": 91844,
        "host.tasks_name": "python",
        "host.tasks": 2,
        "host.tasks_resident": (5100200 + 5200100) * PAGE,
        "host.tasks_largest": 5200100 * PAGE,
        "host.all_resident": (5100200 + 5200100 + 401) * PAGE,
        "host.kills": 1,
    },
    "kernel_4_15_machine.txt": {
        "host.kill_scope": "machine",
        "host.ram_total": 16649998 * PAGE,
        "host.swap_total": 2097148 * KIB,
        "host.swap_free": 0,
        "host.tasks": 5,
        "host.tasks_resident": (9200100 + 4 * 1600000) * PAGE,
    },
    "kernel_5_4_group.txt": {
        "host.kill_scope": "group",
        "host.group_path": "/docker/6be0a1f2",
        "host.group_limit": 24 * GIB,
        "host.group_anonymous": 8589934592,
        "host.group_files": 17179869184,
        "host.group_shared": 16911433728,
        "host.victim_shared": 4900000 * KIB,
    },
    "kernel_5_15_pod.txt": {
        "host.kill_scope": "group",
        "host.victim": "pt_main_thread",
        "host.victim_adjustment": 872,
        "host.group_limit": 64 * GIB,
        "host.tasks": 2,
        "host.kills": 2,
    },
    "kernel_6_8_machine.txt": {
        "host.kill_scope": "machine",
        "host.kill_caller": "node_exporter",
        "host.victim": "python",
        "host.tasks_resident": 30200100 * PAGE,
        "host.swap_free": 12 * KIB,
        "host.ram_total": 33431234 * PAGE,
    },
    "kernel_manual.txt": {"host.kill_scope": "manual", "host.kill_order": -1},
    "kernel_cut.txt": {
        "host.kill_scope": "machine",
        "host.victim": "python3",
        "host.victim_anonymous": 6000000 * KIB,
        "host.tasks": 1,
    },
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_read_to_the_bytes(name: str) -> None:
    found = read(name)
    assert REPORTS[name] == {key: found.get(key) for key in REPORTS[name]}


def test_a_limit_that_means_none_is_no_limit() -> None:
    text = (
        "x invoked oom-killer: gfp_mask=0x1, order=0\n"
        "memory: usage 8kB, limit 9007199254740988kB, failcnt 3"
    )
    found = {fact.key: fact.value for fact in kernel_kill.read(cleaned(text)).facts}
    assert "host.group_limit" not in found
    assert found["host.group_failures"] == 3


def test_a_report_without_its_last_line_still_tells_whose_memory_it_was() -> None:
    text = (
        "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
        " mem_cgroup_out_of_memory+0xc4/0xe0\n"
        "memory: usage 1048576kB, limit 1048576kB, failcnt 9"
    )
    found = {fact.key: fact.value for fact in kernel_kill.read(cleaned(text)).facts}
    assert found["host.kill_scope"] == "group"
    assert found["host.group_limit"] == GIB


def test_of_several_kills_the_one_that_held_most_is_read() -> None:
    kill = "Out of memory: Killed process {} ({}) total-vm:9kB, anon-rss:{}kB, file-rss:0kB"
    text = "\n".join(
        [kill.format(1, "bash", 40), kill.format(2, "python", 9000), kill.format(3, "sh", 4)]
    )
    found = {fact.key: fact.value for fact in kernel_kill.read(cleaned(text)).facts}
    assert found["host.victim"] == "python"
    assert found["host.kills"] == 3


def test_a_name_with_blanks_stays_whole_in_the_table() -> None:
    line = "[   4411]  1000  4411  9111222  2097152 18874368        0             0 npm run serve"
    (tasks,) = summed(rows_of(cleaned(line).lines))
    assert tasks.name == "npm run serve"
    assert tasks.resident == 2097152 * PAGE


@pytest.mark.parametrize(
    "line",
    [
        "[rank0] 10 20 30 40 50 60 70 name",
        "[  pid  ]   uid  tgid total_vm      rss name",
        "[ 12 ] 3",
    ],
)
def test_other_rows_in_brackets_are_no_processes(line: str) -> None:
    assert rows_of(cleaned(line).lines) == ()
