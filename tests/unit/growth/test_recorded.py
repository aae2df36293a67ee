"""Runs of real programs: leaks are told before half of the run, and nothing else raises an alarm.

The programs are those of `tools/watch_programs.py`, recorded by `tools/record_watch.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from oomdoctor.cli.watch_sources import BundleSource
from oomdoctor.growth.book import Book
from oomdoctor.growth.findings import DEVICE, HOST, findings
from oomdoctor.growth.verdict import Kind, Level
from oomdoctor.recorder.bundle import moment_of, started_of

RECORDED = Path(__file__).resolve().parents[3] / "fixtures" / "watch"
LOOKS = 60
LEAKS = {
    "graph-of-losses": (DEVICE, Kind.DEVICE_LEAK),
    "evaluation-outputs": (DEVICE, Kind.DEVICE_LEAK),
    "outputs-of-steps": (DEVICE, Kind.DEVICE_LEAK),
    "host-list": (HOST, Kind.HOST_LEAK),
    "loader-workers": (HOST, Kind.HOST_LEAK),
}
INNOCENT = (
    *("longer-batches", "warm-up", "evaluation", "epoch-saw", "accumulation", "generation"),
    *("checkpoints", "token-cache"),
)


class Alarm(NamedTuple):
    """The first alarm of a run: which, and after which part of its work."""

    memory: str
    kind: Kind
    part: float


def alarms(name: str) -> list[Alarm]:
    """Look at a run again and again as it comes in; return the first alarm of each kind."""
    source = BundleSource(RECORDED / name)
    started = started_of(source.run())
    news = sorted(source.news(), key=lambda one: moment_of(*one, started))
    moments = [moment_of(*one, started) for one in news]
    worked = [at for at, one in zip(moments, news, strict=True) if one[1].get("type") == "step"]
    first, last = (worked[0], worked[-1]) if worked else (moments[0], moments[-1])
    found: dict[tuple[str, Kind], Alarm] = {}
    book, given = Book(started), 0
    for look in range(1, LOOKS + 1):
        until = first + (last - first) * look / LOOKS
        while given < len(news) and moments[given] <= until:
            book.put([news[given]])
            given += 1
        for one in findings(book):
            if one.verdict.level is Level.ALARM:
                alarm = Alarm(one.memory, one.verdict.kind, look / LOOKS)
                found.setdefault((one.memory, one.verdict.kind), alarm)
    return list(found.values())


def test_every_recorded_run_is_judged() -> None:
    assert {one.name for one in RECORDED.iterdir()} == {*LEAKS, *INNOCENT}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_told_before_half_of_the_run(name: str) -> None:
    found = alarms(name)

    assert [(one.memory, one.kind) for one in found] == [LEAKS[name]]
    assert found[0].part < 0.5


@pytest.mark.parametrize("name", INNOCENT)
def test_what_only_looks_like_a_leak_raises_no_alarm(name: str) -> None:
    assert alarms(name) == []
