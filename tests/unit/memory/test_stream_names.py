"""Names of a simulation go to the allocations of a run that are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.stream_names import named
from tests.unit.memory.streams import MIB, Script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.memory.stream import Stream

SIZES = tuple(range(MIB, 40 * MIB, MIB))


def simulated(sizes: Sequence[int] = SIZES) -> Stream:
    run = Script()
    run.phase("step 1")
    run.part("forward")
    for number, size in enumerate(sizes):
        run.make(size, f"aten.op{number}", f"layers.{number}", "activation")
    return run.stream()


def recorded(sizes: Sequence[int] = SIZES, part: str = "forward") -> Stream:
    run = Script()
    run.phase("step 1")
    run.part(part)
    for size in sizes:
        run.make(size, "")
    return run.stream()


def test_the_same_allocations_get_all_names() -> None:
    found = named(recorded(), simulated())

    assert found.is_whole
    assert found.stream.allocations == simulated().allocations
    assert (found.alike, found.unnamed_bytes, found.lacking) == (len(SIZES), 0, 0)


def test_what_only_the_run_allocates_has_no_name_and_shifts_no_other() -> None:
    more = (*SIZES[:10], 7, 9, *SIZES[10:])

    found = named(recorded(more), simulated())

    assert not found.is_whole
    assert [one.module for one in found.stream.allocations[8:14]] == [
        *("layers.8", "layers.9", "", "", "layers.10", "layers.11"),
    ]
    assert (found.alike, found.unnamed_bytes, found.lacking) == (len(SIZES), 16, 0)


def test_what_only_the_simulation_allocates_is_counted() -> None:
    found = named(recorded((*SIZES[:10], *SIZES[12:])), simulated())

    assert [one.module for one in found.stream.allocations[9:11]] == ["layers.9", "layers.12"]
    assert (found.unnamed_bytes, found.lacking) == (0, 2)
    assert not found.is_whole


def test_a_size_that_differs_has_no_name() -> None:
    found = named(recorded((*SIZES[:5], 3, *SIZES[6:])), simulated())

    assert [one.module for one in found.stream.allocations[4:7]] == ["layers.4", "", "layers.6"]
    assert (found.alike, found.unnamed_bytes, found.lacking) == (len(SIZES) - 1, 3, 1)


def test_the_same_sizes_of_another_part_of_the_run_are_others() -> None:
    found = named(recorded(part="backward"), simulated())

    assert {one.module for one in found.stream.allocations} == {""}
    assert found.alike == 0


def test_a_run_that_ends_early_keeps_the_names_so_far() -> None:
    found = named(recorded(SIZES[:6]), simulated())

    assert [one.module for one in found.stream.allocations] == [f"layers.{at}" for at in range(6)]
    assert found.lacking == len(SIZES) - 6
