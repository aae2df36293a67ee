"""A planted leak is the first suspect, with its line; what is no leak is not accused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.snapshot.leaks import Suspect, slope, suspects_in
from oomdoctor.snapshot.lives import curve_of, lives_of
from oomdoctor.snapshot.reading import read_snapshot
from oomdoctor.snapshot.report import report_on
from oomdoctor.snapshot.shapes import snapshot_of
from oomdoctor.snapshot.steps import Steps, steps_of
from tests.unit.snapshot.planted import (
    BACKWARD,
    GIB,
    KIB,
    LEAK,
    MIB,
    SCRIPT,
    SETUP,
    Recorded,
    layer,
    leak,
    longer,
    shuffled,
    train,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.memory.allocator_block import Block

SHARED = Path(__file__).resolve().parents[4] / "shared" / "snapshots"
FOREIGN = sorted(SHARED.glob("*.pickle")) if SHARED.is_dir() else []


@pytest.mark.parametrize("path", FOREIGN, ids=lambda path: path.stem)
def test_real_runs_of_a_few_steps_are_not_accused(path: Path) -> None:
    report = report_on(read_snapshot(str(path)))

    ((suspects_found, fragmentation),) = [
        (one.suspects, one.fragmentation) for one in report.devices
    ]
    assert suspects_found == ()
    assert fragmentation is not None
    assert (fragmentation.proven, fragmentation.exact) == (False, True)


def judged(plain: dict[str, Any]) -> list[tuple[Steps | None, tuple[Suspect, ...]]]:
    snapshot = snapshot_of(plain)
    found = []
    for device in snapshot.devices:
        lives = lives_of(device)
        curve = curve_of(lives, len(device.events))
        peak = max(range(len(curve)), key=curve.__getitem__)
        steps = steps_of(device, snapshot, curve)
        found.append(
            (steps, () if steps is None else suspects_in(lives, steps, snapshot.stacks, peak))
        )
    return found


def suspects(plain: dict[str, Any]) -> tuple[Suspect, ...]:
    ((steps, found),) = judged(plain)
    assert steps is not None
    return found


@pytest.mark.parametrize("lengths", [lambda _: 512, shuffled, longer])
@pytest.mark.parametrize("size", [4 * KIB, 8 * MIB, 300 * MIB])
def test_a_block_kept_in_every_step_is_the_one_suspect(
    size: int, lengths: Callable[[int], int]
) -> None:
    (found,) = suspects(train(Recorded(), extra=leak(size), length=lengths).snapshot())

    assert found.site.frame == (SCRIPT, 22, "main")
    assert (found.slope_bytes, found.slope_blocks) == (size, 1)
    assert (found.same_size, found.same_size_share) == (size, 1)


def test_a_block_kept_now_and_then_is_found() -> None:
    (found,) = suspects(train(Recorded(), extra=leak(MIB, every=4)).snapshot())

    assert found.site.frame == (SCRIPT, 22, "main")


@pytest.mark.parametrize("lengths", [lambda _: 512, shuffled, longer])
def test_weights_states_and_longer_batches_are_no_suspects(lengths: Callable[[int], int]) -> None:
    assert suspects(train(Recorded(), length=lengths).snapshot()) == ()


def test_a_buffer_that_each_step_replaces_by_a_larger_one_is_no_suspect() -> None:
    held: list[Block] = []

    def replace(run: Recorded, step: int) -> None:
        held.append(run.alloc((step + 1) * MIB, LEAK))
        run.free(*held[:-1])
        del held[:-1]

    assert suspects(train(Recorded(), extra=replace).snapshot()) == ()


def test_a_cache_that_fills_in_the_first_steps_is_no_suspect() -> None:
    def fill(run: Recorded, step: int) -> None:
        if step < 12:
            run.alloc(16 * MIB, LEAK)

    assert suspects(train(Recorded(), extra=fill).snapshot()) == ()


@pytest.mark.parametrize("late", [5, 20, 33])
def test_what_comes_all_at_once_is_no_suspect(late: int) -> None:
    def jump(run: Recorded, step: int) -> None:
        for _ in range(6 if step == late else 0):
            run.alloc(64 * MIB, LEAK)

    assert suspects(train(Recorded(), extra=jump).snapshot()) == ()


def test_a_window_of_the_latest_steps_is_no_suspect() -> None:
    held: list[Block] = []

    def slide(run: Recorded, _: int) -> None:
        held.append(run.alloc(16 * MIB, LEAK))
        if len(held) > 5:
            run.free(held.pop(0))

    assert suspects(train(Recorded(), extra=slide).snapshot()) == ()


def test_frees_that_wait_for_a_stream_are_no_leak() -> None:
    def defer(run: Recorded, step: int) -> None:
        run.cache.busy = {1} if step % 3 else set()
        block = run.alloc(16 * MIB, LEAK)
        run.cache.record_stream(block, 1)
        run.free(block)

    assert suspects(train(Recorded(), extra=defer).snapshot()) == ()


@pytest.mark.parametrize(("kept", "lines"), [(True, [22]), (False, [])])
def test_private_pools_leak_like_others(kept: bool, lines: list[int]) -> None:
    def divert(run: Recorded, _: int) -> None:
        run.cache.begin_pool((0, 7))
        block = run.alloc(3 * MIB, LEAK)
        run.cache.end_pool((0, 7))
        if not kept:
            run.free(block)

    found = suspects(train(Recorded(), extra=divert).snapshot())

    assert [one.site.frame and one.site.frame.line for one in found] == lines


def test_a_block_that_pins_its_segment_is_no_leak() -> None:
    def pin(run: Recorded, step: int) -> None:
        held = [run.alloc(5 * MIB, layer(60)) for _ in range(3)]
        if step < 2:
            run.alloc(5 * MIB, LEAK)
        run.free(*held)

    assert suspects(train(Recorded(), extra=pin).snapshot()) == ()


def test_the_larger_of_two_leaks_comes_first() -> None:
    def both(run: Recorded, _: int) -> None:
        run.alloc(MIB, LEAK)
        run.alloc(3 * MIB, layer(77))

    lines = [
        one.site.frame and one.site.frame.line
        for one in suspects(train(Recorded(), extra=both).snapshot())
    ]

    assert lines == [77, 22]


def test_the_frame_of_the_user_is_named_and_not_the_one_of_the_library() -> None:
    def keep(run: Recorded, _: int) -> None:
        run.alloc(MIB, layer(66))

    (found,) = suspects(train(Recorded(), extra=keep).snapshot())

    assert found.site.words == "/home/me/model.py:66 in forward"
    assert found.stack.frames[0].name == "linear"


def test_a_leak_is_found_in_a_trace_that_lost_its_beginning() -> None:
    (found,) = suspects(train(Recorded(kept=900), extra=leak(8 * MIB)).snapshot())

    assert found.site.frame == (SCRIPT, 22, "main")
    assert found.slope_bytes == 8 * MIB


def test_a_leak_is_found_on_the_device_that_has_it() -> None:
    one, two = (
        train(Recorded(device=0)).snapshot(),
        train(Recorded(device=1), extra=leak(MIB)).snapshot(),
    )
    plain = {
        "segments": one["segments"] + two["segments"],
        "device_traces": [one["device_traces"][0], two["device_traces"][1]],
    }

    (_, first), (_, second) = judged(plain)

    assert first == ()
    assert [found.site.frame for found in second] == [(SCRIPT, 22, "main")]


def test_a_leak_that_ends_in_out_of_memory_is_found() -> None:
    run = train(Recorded(capacity=6 * GIB), steps=400, extra=leak(64 * MIB))

    assert run.cache.stats.counters["num_ooms"] == 1
    assert [found.site.frame for found in suspects(run.snapshot())] == [(SCRIPT, 22, "main")]


def test_without_stacks_the_size_of_the_leak_is_told() -> None:
    plain = train(Recorded(), extra=leak(5 * MIB)).snapshot()
    for event in plain["device_traces"][0]:
        event["frames"] = []

    ((steps, found),) = judged(plain)

    assert steps is not None
    assert steps.shown_by == "the rise and fall of the memory"
    assert [one.site.words for one in found] == ["no recorded stack, blocks of 5,242,880 B"]


def test_layers_are_no_steps() -> None:
    run = Recorded()
    run.alloc(64 * MIB, SETUP)
    for _ in range(24):
        for line in (50, 51, 52):
            run.free(run.alloc(9 * MIB, layer(line)))
            run.alloc(8 * MIB, layer(line))

    assert judged(run.snapshot()) == [(None, ())]


@pytest.mark.parametrize("words", ["step {}", "{}"])
def test_the_notes_of_the_user_outrank_the_loop(words: str) -> None:
    run = Recorded()

    def note(run: Recorded, step: int) -> None:
        run.note = words.format(step)

    ((steps, _),) = judged(train(run, extra=note).snapshot())

    assert steps is not None
    assert (steps.shown_by, len(steps.ends)) == ("the notes of the user", 39)


def test_annotations_outrank_all_others() -> None:
    plain = train(Recorded(), extra=leak(MIB)).snapshot()
    times = [one["time_us"] for one in plain["device_traces"][0]]
    plain["external_annotations"] = [
        {"stage": "END", "name": f"ProfilerStep#{at}", "device": 0, "time_us": times[at * 100]}
        for at in range(1, 6)
    ]

    ((steps, _),) = judged(plain)

    assert steps is not None
    assert steps == Steps(
        tuple(at * 100 + 1 for at in range(1, 6)), "the annotations ProfilerStep#"
    )


def test_the_loop_is_named() -> None:
    ((steps, _),) = judged(train(Recorded()).snapshot())

    assert steps is not None
    assert steps.shown_by == f"the loop at {SCRIPT}:20"
    assert len(steps.ends) == 39


def test_the_line_that_called_backward_is_named_for_what_it_leaves() -> None:
    def keep(run: Recorded, _: int) -> None:
        run.alloc(MIB, BACKWARD)

    (found,) = suspects(train(Recorded(), extra=keep).snapshot())

    assert found.site.frame == (SCRIPT, 24, "main")


@pytest.mark.parametrize(
    ("values", "expected"),
    [((1,), 0), ((1, 3, 5), 2), ((0, 0, 0, 0, 90), 0), (tuple(range(999)), 1)],
)
def test_the_slope_is_that_of_most_pairs(values: tuple[int, ...], expected: float) -> None:
    assert slope(values) == expected
