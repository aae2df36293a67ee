"""A stream of allocations as plain values for JSON and back: columns, names once, runs as counts.

    {"names": ["", "aten.mm.default", ...], "sizes": [512, ...], "operators": [1, ...],
     "phases": [[3, 1180], ...], "events": [0, 0, 1, ...], "marks": [[0, "phase", "load", 0], ...]}

An event is 0 for the next allocation, else how many allocations ago the one was made that is freed
(1: the latest). Phases, parts, categories and CUDA streams change rarely: [value, how often].
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from oomdoctor.errors import InputError
from oomdoctor.memory.stream import Allocation, Mark, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

SCHEMA = 1
_COLUMNS = ("operators", "modules")
_RUNS = ("phases", "parts", "categories", "cuda_streams")


def to_json(stream: Stream) -> dict[str, Any]:
    """Return the stream as lists, numbers and texts."""
    names: dict[str, int] = {"": 0}

    def number(name: str) -> int:
        return names.setdefault(name, len(names))

    allocations = stream.allocations
    columns = list(zip(*allocations, strict=True)) or [()] * len(Allocation._fields)
    sizes, operators, modules, phases, parts, categories, cuda_streams = columns
    return {
        "schema": SCHEMA,
        "origin": stream.origin,
        "assumptions": list(stream.assumptions),
        "facts": dict(stream.facts),
        "sizes": list(sizes),
        "operators": [number(name) for name in operators],
        "modules": [number(name) for name in modules],
        "phases": _runs(map(number, phases)),
        "parts": _runs(map(number, parts)),
        "categories": _runs(map(number, categories)),
        "cuda_streams": _runs(cuda_streams),
        "names": list(names),
        "events": _ages(stream.events, len(allocations)),
        "marks": [list(mark) for mark in stream.marks],
    }


def from_json(values: Mapping[str, Any]) -> Stream:
    """Return the stream of such values; InputError where they are none."""
    if values.get("schema") != SCHEMA:
        raise InputError(f"a stream of schema {values.get('schema')!r} cannot be read")
    try:
        return _stream(values)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"not a stream of allocations: {error}") from error


def _stream(values: Mapping[str, Any]) -> Stream:
    names: list[str] = values["names"]
    sizes: list[int] = values["sizes"]
    columns = [[names[number] for number in values[key]] for key in _COLUMNS]
    runs = [_spread(values[key], None if key == "cuda_streams" else names) for key in _RUNS]
    allocations = tuple(map(Allocation, sizes, *columns, *runs))
    if any(len(column) != len(sizes) for column in (*columns, *runs)):
        raise ValueError("its columns are not of one length")
    return Stream(
        allocations=allocations,
        events=_numbers(values["events"], len(sizes)),
        marks=tuple(Mark(*mark) for mark in values["marks"]),
        origin=str(values["origin"]),
        assumptions=tuple(map(str, values["assumptions"])),
        facts=dict(values["facts"]),
    )


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    return [[value, sum(1 for _ in group)] for value, group in groupby(numbers)]


def _spread(runs: Iterable[Sequence[int]], names: Sequence[str] | None) -> list[Any]:
    value: Callable[[int], object] = int if names is None else names.__getitem__
    return [one for number, count in runs for one in [value(number)] * count]


def _ages(events: Sequence[int], count: int) -> list[int]:
    """Return the events as ages; an allocation that comes out of its order has no age."""
    made = 0
    found = []
    for event in events:
        if event < 0:
            found.append(made - ~event)
        elif event == made:
            found.append(0)
            made += 1
        else:
            raise ValueError(f"allocation {event} is made where {made} is the next")
    if made != count:
        raise ValueError(f"{made} of {count} allocations are made")
    return found


def _numbers(ages: Sequence[int], count: int) -> tuple[int, ...]:
    made = 0
    found = []
    freed = bytearray(count)
    for age in ages:
        if age == 0:
            found.append(made)
            made += 1
            continue
        number = made - age
        if number < 0 or age < 0 or freed[number]:
            raise ValueError("something is freed that is not there")
        freed[number] = 1
        found.append(~number)
    if made != count:
        raise ValueError(f"{made} of {count} allocations are made")
    return tuple(found)
