"""The calls that lead to what is held lie within their callers, and their widths add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.snapshot.calls import Call, calls_of
from oomdoctor.snapshot.report import SnapshotReport, report_on
from oomdoctor.snapshot.shapes import snapshot_of
from tests.unit.snapshot.planted import MIB, Recorded, leak, train

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.fixture(scope="module")
def report() -> SnapshotReport:
    """A run that keeps 8 MiB in every step."""
    return report_on(snapshot_of(train(Recorded(), extra=leak(8 * MIB)).snapshot()))


@pytest.fixture(scope="module")
def calls(report: SnapshotReport) -> tuple[Call, ...]:
    """The calls at its peak."""
    return calls_of(report.devices[0].peak, report.stacks)


def caller_of(call: Call, calls: Sequence[Call]) -> Call:
    return next(
        one
        for one in calls
        if one.depth == call.depth - 1
        and one.start <= call.start
        and call.start + call.held_bytes <= one.start + one.held_bytes
    )


def test_every_call_lies_within_its_caller(calls: tuple[Call, ...]) -> None:
    below = [one for one in calls if one.depth]

    assert below
    assert all(caller_of(one, calls).held_bytes >= one.held_bytes for one in below)


def test_the_outermost_calls_make_up_all_that_is_held(
    report: SnapshotReport, calls: tuple[Call, ...]
) -> None:
    outermost = [one for one in calls if one.depth == 0]
    small = report.devices[0].peak.held_bytes * 0.01

    whole = sum(one.held_bytes for one in outermost)
    assert report.devices[0].peak.held_bytes == pytest.approx(whole, abs=small)


def test_calls_beside_one_another_do_not_overlap(calls: tuple[Call, ...]) -> None:
    rows: dict[int, list[Call]] = {}
    for one in calls:
        rows.setdefault(one.depth, []).append(one)

    for row in rows.values():
        ordered = sorted(row, key=lambda one: one.start)
        ends = [one.start + one.held_bytes for one in ordered]
        assert all(end <= one.start for end, one in zip(ends, ordered[1:], strict=False))


def test_the_line_that_leaks_is_a_call_of_its_own(calls: tuple[Call, ...]) -> None:
    leaking = [one for one in calls if one.frames and one.frames[-1].line == 22]

    assert len(leaking) == 1
    assert leaking[0].held_bytes % (8 * MIB) == 0


def test_what_has_no_stack_is_told_apart() -> None:
    run = Recorded()
    run.alloc(64 * MIB)
    run.alloc(64 * MIB, ((("/home/me/train.py"), 5, "main"),))
    report = report_on(snapshot_of(run.snapshot()))

    found = calls_of(report.devices[0].peak, report.stacks)

    assert {(), ("main",)} >= {tuple(frame.name for frame in one.frames) for one in found}
