"""Which rank and machine the names of logs give."""

from __future__ import annotations

import pytest

from oomdoctor.reason.file_names import name_ranks, rotation_of


@pytest.mark.parametrize(
    ("paths", "ranks"),
    [
        (["logs/rank_3.log"], [3]),
        (["rank3.out", "rank0.out"], [3, 0]),
        (["log-r03.txt", "log-r00.txt"], [3, 0]),
        (["log-r03.txt"], [None]),
        (["a1_/attempt_0/3/stderr.log", "a1_/attempt_0/0/stderr.log"], [3, 0]),
        (["1/rank.3/stdout", "1/rank.0/stdout"], [3, 0]),
        (["1.3/stdout", "1.0/stdout"], [3, 0]),
        (["slurm-123-7.out", "slurm-123-0.out"], [7, 0]),
        (["slurm-123_4.out", "slurm-123_5.out"], [None, None]),
        (["worker-1.txt", "worker-0.txt.gz"], [1, 0]),
        (["lm-master-0.log", "lm-worker-0.log", "lm-worker-1.log"], [0, 1, 2]),
        (["0.log", "1.log", "10.log"], [0, 1, 10]),
        (["train.log", "train.log.1", "train.log.2.gz"], [None, None, None]),
        (["step_100.log", "step_2000.log"], [None, None]),
        (["run-20261129.log", "run-20261130.log"], [None, None]),
        (["a/crash.log", "b/crash.log"], [None, None]),
    ],
)
def test_a_name_gives_a_rank(paths: list[str], ranks: list[int | None]) -> None:
    found = name_ranks(paths)

    assert ranks == [found[path].rank for path in paths]


@pytest.mark.parametrize(
    ("paths", "nodes"),
    [
        (["node1_gpu2.log", "node0_gpu2.log", "node0_gpu0.log"], ["node1", "node0", "node0"]),
        (["x1/attempt_0/3/stderr.log", "x2/attempt_0/3/stderr.log"], ["x1", "x2"]),
        (["x/attempt_0/3/stderr.log", "x/attempt_1/3/stderr.log"], [None, None]),
        (["x/attempt_0/3/stderr.log", "x/attempt_0/3/stdout.log"], [None, None]),
    ],
)
def test_ranks_of_one_number_are_on_two_machines(paths: list[str], nodes: list[str | None]) -> None:
    found = name_ranks(paths)

    assert nodes == [found[path].node for path in paths]


def test_a_higher_number_is_an_older_log() -> None:
    assert [rotation_of(name) for name in ("a.log", "a.log.1", "a.log.12.gz")] == [0, 1, 12]
