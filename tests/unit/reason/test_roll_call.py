"""Causes and echoes across inputs, and one line per rank."""

from __future__ import annotations

from oomdoctor.evidence.launcher_table import Blamed
from oomdoctor.model.core import Failure, Quote
from oomdoctor.reason.echo import STALE_S
from oomdoctor.reason.roll_call import RankLog, fold_ranks
from oomdoctor.reason.timeline import first_failure, mark_consequences
from oomdoctor.record import replace
from tests.unit.reason.builders import fact, failure


def told(one: Failure, artifact: str, text: str = "line", **changes: object) -> Failure:
    quote = Quote(artifact=artifact, line=one.order, text=text)
    return replace(one, line_quote=quote, **changes)  # type: ignore[arg-type] - by name


def kill(artifact: str, *, why: bool = False, when: float | None = None) -> Failure:
    facts = [fact("host.killed", value=True)]
    if why:
        facts.append(fact("host.oom_kill", value=True))
    return told(failure("host-oom", order=3, facts=facts), artifact, when=when)


def test_an_exit_code_of_another_input_is_the_echo_of_the_kernels_kill() -> None:
    echo, cause = kill("train.log"), kill("dmesg.txt", why=True)

    marked = mark_consequences([echo, cause])

    assert [one.consequence for one in marked] == [True, False]


def test_a_kill_after_a_gpu_failure_of_another_input_does_not_come_first() -> None:
    oom = told(failure(order=9, rank=1), "rank1.log", when=100.0)
    killed = kill("launcher.log", when=110.0)

    first = first_failure([killed, oom])

    assert first is not None
    assert first.kind == "gpu-oom"


def test_a_kernels_kill_of_hours_ago_is_of_another_run() -> None:
    old = kill("dmesg.txt", why=True, when=0.0)
    oom = told(failure(order=9), "train.log", when=STALE_S + 1)

    first = first_failure([old, oom])

    assert first is not None
    assert first.kind == "gpu-oom"


def test_a_kernels_kill_a_moment_ago_comes_first() -> None:
    recent = kill("dmesg.txt", why=True, when=0.0)
    oom = told(failure(order=9), "train.log", when=60.0)

    first = first_failure([oom, recent])

    assert first is not None
    assert first.kind == "host-oom"


def test_a_broken_connection_in_another_input_follows() -> None:
    lost = told(failure("other", order=1, rank=0), "rank0.log", "Connection reset by peer")
    oom = told(failure(order=9, rank=1), "rank1.log")

    marked = mark_consequences([lost, oom])

    assert [one.consequence for one in marked] == [True, False]


def test_without_times_the_launcher_says_who_failed_first() -> None:
    one = told(failure(order=1, rank=1), "rank1.log")
    blamed = told(failure(order=1, rank=2), "rank2.log", blamed=True)

    first = first_failure([one, blamed])

    assert first is not None
    assert first.rank == 2


def test_a_stamp_of_its_own_outweighs_the_launchers_word() -> None:
    early = told(failure(order=1, rank=1, stamp="10:00:00"), "rank1.log", when=1.0)
    blamed = told(failure(order=1, rank=2, stamp="10:00:05"), "rank2.log", when=6.0, blamed=True)

    first = first_failure([blamed, early])

    assert first is not None
    assert first.rank == 1


def test_every_rank_has_a_line() -> None:
    oom = told(failure(order=9, rank=3), "rank3.log", when=5.0)
    quote = Quote(artifact="run.log", line=4, text="exitcode  : -15 (pid: 7)")
    entry = Blamed(rank=5, root=False, host=None, exit_code=-15, stamp=None, quote=quote)
    logs = [
        RankLog(artifact="rank0.log", rank=0, ending="terminated", world=7),
        RankLog(artifact="rank1.log", rank=1),
        RankLog(artifact="rank2.log", rank=2, ending="terminated"),
        RankLog(artifact="rank3.log", rank=3),
        RankLog(artifact="rank4.log", rank=4, ending="finished"),
        RankLog(artifact="run.log", blamed=(entry,)),
    ]

    rows = fold_ranks([oom], logs, oom)

    assert {row.ranks: row.headline for row in rows} == {
        (3,): "GPU out of memory",
        (0, 2, 5): "ended by SIGTERM after rank 3",
        (1,): "no failure in its log, which just ends",
        (4,): "finished",
        (6,): "no log of it was given",
    }
    assert rows[0].first
    assert [row.failed for row in rows] == [True, True, False, False, False]


def test_ranks_of_one_number_on_two_machines_are_two() -> None:
    here = told(failure(order=1, rank=2), "a.log", when=1.0, node="node1")
    there = told(failure(order=1, rank=2), "b.log", when=2.0, node="node0")

    rows = fold_ranks([here, there], (), here)

    assert [(row.ranks, row.node) for row in rows] == [((2,), "node1"), ((2,), "node0")]
