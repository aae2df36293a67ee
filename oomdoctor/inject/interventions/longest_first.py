"""Lets the longest examples of a data set be the first batch of each DataLoader."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from .loaders import when_made

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_S = 20.0
_NAMES = ("length", "lengths", "input_ids")


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Change the order in which each DataLoader takes examples."""
    del arguments

    def change(given: dict[str, Any]) -> None:
        dataset, rows = given.get("dataset"), given.get("batch_size", 1)
        if given.get("batch_sampler") is not None:
            if not isinstance(getattr(given["batch_sampler"], "sampler", None), LongestFirst):
                agent.note("longest-first", "a sampler of the program's own makes the batches")
            return
        if rows is None or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            agent.note("longest-first", "the data set has no order of its own")
            return
        sampler = given.get("sampler")
        if isinstance(sampler, LongestFirst):
            return
        lengths = lengths_of(dataset)
        if lengths is None:
            agent.note("longest-first", "how long the examples are cannot be seen")
            return
        if sampler is None:
            from torch.utils.data import RandomSampler

            sampler = RandomSampler(dataset) if given.pop("shuffle", None) else range(len(lengths))
        given["sampler"] = LongestFirst(sampler, lengths, rows)
        agent.intervened("longest-first", f"{max(lengths)} tokens first")

    when_made(agent, change)


class LongestFirst:
    """A sampler that gives the longest examples before all others, which keep their order."""

    def __init__(self, sampler: Any, lengths: list[int], rows: int) -> None:
        """Find the longest ones."""
        self.sampler = sampler
        order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
        self.first = order[:rows]

    def __len__(self) -> int:
        """Return how many examples there are."""
        return len(self.sampler)

    def __iter__(self) -> Iterator[int]:
        """Give each example once, as the program's own sampler does."""
        wanted = len(self)
        given = set(self.first)
        yield from self.first
        left = wanted - len(self.first)
        for index in self.sampler:
            if index not in given and left > 0:
                left -= 1
                yield index

    def __getattr__(self, name: str) -> Any:
        """Return what else the program's own sampler has."""
        if name in ("sampler", "__setstate__"):
            raise AttributeError(name)
        return getattr(self.sampler, name)


def lengths_of(dataset: Any) -> list[int] | None:
    """Return the tokens of each example, None where they cannot be seen in some seconds."""
    columns = getattr(dataset, "column_names", None) or ()
    for name in _NAMES:
        if name in columns:
            return [int(one) if isinstance(one, int) else len(one) for one in dataset[name]]
    began = time.monotonic()
    found = []
    for index in range(len(dataset)):
        length = _length(dataset[index])
        if length is None or time.monotonic() > began + _LONGEST_S:
            return None
        found.append(length)
    return found


def _length(example: Any) -> int | None:
    if hasattr(example, "keys"):
        example = example.get("input_ids") if "input_ids" in example else None
    elif isinstance(example, tuple) and example:
        example = example[0]
    return len(example) if hasattr(example, "__len__") else None
