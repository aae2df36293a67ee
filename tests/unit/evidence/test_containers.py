"""A container's memory limit and use are read from Kubernetes and docker texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import containers
from tests.unit.evidence.tables_documents import GIB, MIB, read_raw, read_text, values

if TYPE_CHECKING:
    from oomdoctor.model.core import Value


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pod_describe.txt", {"host.group_limit": 48 * GIB}),
        ("pod_yaml.txt", {"host.group_limit": 20_000_000_000}),
        ("evicted.txt", {"host.group_used": 56 * GIB}),
        ("docker_inspect.txt", {"host.group_limit": 32 * GIB, "host.shm_total": 64 * MIB}),
        (
            "docker_stats.txt",
            {"host.group_limit": 32 * GIB, "host.group_used": round(31.62 * GIB)},
        ),
    ],
)
def test_limit_and_use_of_a_container_are_read(name: str, expected: dict[str, Value]) -> None:
    assert expected == values(read_raw(containers, "host", name))


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ('{"resources": {"limits": {"cpu": "8", "memory": "24Gi"}, "requests": {}}}', 24 * GIB),
        ("$ cat /sys/fs/cgroup/memory.max\n17179869184", 16 * GIB),
        ("memory.limit_in_bytes: 8589934592", 8 * GIB),
    ],
)
def test_other_spellings_of_a_limit(text: str, limit: int) -> None:
    assert {"host.group_limit": limit} == values(read_text(containers, text))


@pytest.mark.parametrize(
    "text",
    [
        '"Memory": 0,',
        "$ cat /sys/fs/cgroup/memory.limit_in_bytes\n9223372036854771712",
        "$ cat /sys/fs/cgroup/memory.max\nmax",
        "    Requests:\n      memory: 8Gi\n limits of this approach",
    ],
)
def test_no_limit_is_not_a_figure(text: str) -> None:
    assert values(read_text(containers, text)) == {}
