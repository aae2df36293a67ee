"""Files are looked at again and again; an action follows when a change has come to rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.linting.watch import Watcher, stamp_of, watch

if TYPE_CHECKING:
    from pathlib import Path

    from oomdoctor.linting.watch import Stamp


class World:
    """Files with stamps, and a clock, both moved by hand."""

    def __init__(self, *names: str) -> None:
        """Start with files of these names."""
        self.now = 0.0
        self.files: dict[str, Stamp] = dict.fromkeys(names, (0, 0, 0))
        self.watcher = Watcher(
            lambda: list(self.files),
            clock=lambda: self.now,
            stamp=lambda path: self.files[path],
            quiet=1.0,
        )

    def after(self, seconds: float) -> tuple[str, ...]:
        self.now += seconds
        return self.watcher.changed()


def test_nothing_is_told_as_long_as_nothing_changes() -> None:
    world = World("a")

    assert [world.after(5.0), world.after(5.0)] == [(), ()]


def test_a_change_is_told_once_when_it_has_come_to_rest() -> None:
    world = World("a", "b")
    world.files["b"] = (1, 1, 1)

    assert [world.after(0.1), world.after(0.5), world.after(0.6), world.after(9.0)] == [
        (),
        (),
        ("b",),
        (),
    ]


def test_writing_goes_on_puts_it_off() -> None:
    world = World("a")
    told = []
    for number in range(1, 5):
        world.files["a"] = (number, number, 1)
        told.append(world.after(0.9))

    assert [*told, world.after(1.1)] == [(), (), (), (), ("a",)]


def test_a_file_that_vanishes_while_it_is_saved_is_waited_for() -> None:
    world = World("a")
    world.files["a"] = None
    assert [world.after(0.1), world.after(1.5)] == [(), ()]
    world.files["a"] = (2, 2, 2)

    assert [world.after(0.1), world.after(1.0)] == [(), ("a",)]


def test_a_file_that_stays_away_is_told() -> None:
    world = World("a")
    world.files["a"] = None

    assert [world.after(0.1), world.after(4.1)] == [(), ("a",)]


def test_a_new_file_is_seen() -> None:
    world = World("a")
    world.files["new"] = (1, 1, 1)

    assert [world.after(0.1), world.after(1.0)] == [(), ("new",)]


def test_a_file_that_is_put_back_as_it_was_is_no_change() -> None:
    world = World("a")
    world.files["a"] = (1, 1, 1)
    world.after(0.1)
    world.files["a"] = (0, 0, 0)

    assert [world.after(0.1), world.after(2.0)] == [(), ()]


def test_the_loop_shows_at_once_and_after_each_change_until_it_is_interrupted() -> None:
    world = World("a")
    shown: list[tuple[str, ...]] = []
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        world.now += seconds
        if len(slept) == 2:
            world.files["a"] = (1, 1, 1)
        if len(slept) == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(world.watcher, shown.append, sleep=sleep, poll=0.25)

    assert shown == [(), ("a",)]


def test_a_folder_that_takes_long_is_looked_at_less_often() -> None:
    now = [0.0]
    slept: list[float] = []

    def paths() -> list[str]:
        now[0] += 0.5
        return []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(Watcher(paths, clock=lambda: now[0]), lambda _: None, sleep=sleep)

    assert slept == [4.5]


def test_a_stamp_changes_with_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert stamp_of(str(path)) is None
    path.write_text("1", encoding="utf-8")
    first = stamp_of(str(path))
    path.write_text("22", encoding="utf-8")

    assert first is not None
    assert stamp_of(str(path)) != first
