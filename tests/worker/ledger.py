"""Counts the bytes of all storages that live on the host while it is entered: a small tracer."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from oomdoctor.worker.observer import Silent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Ledger(TorchDispatchMode):
    """Live and highest bytes, and every allocation in order as (operator, bytes)."""

    def __init__(self) -> None:
        """Count nothing yet."""
        super().__init__()
        self.live: dict[int, int] = {}
        self.bytes = 0
        self.peak = 0
        self.made: list[tuple[str, int]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operator and note the storages that it made."""
        out = func(*args, **(kwargs or {}))
        for tensor in _tensors(out):
            self._note(tensor, str(func))
        return out

    def _note(self, tensor: torch.Tensor, operator: str) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        size = storage.nbytes()
        if key in self.live or not size or tensor.is_meta:
            return
        self.live[key] = size
        self.bytes += size
        self.peak = max(self.peak, self.bytes)
        self.made.append((operator, size))
        weakref.finalize(storage, self._forget, key)

    def _forget(self, key: int) -> None:
        self.bytes -= self.live.pop(key, 0)

    def reset(self) -> None:
        """Begin to count the peak anew."""
        self.peak = self.bytes
        self.made.clear()


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one)


class Watching(Silent):
    """An observer that notes the peak of every part of a run, and what was tagged."""

    def __init__(self, ledger: Ledger) -> None:
        """Read the peaks from a ledger."""
        self.ledger = ledger
        self.peaks: dict[str, int] = {}
        self.tags: dict[str, set[int]] = {}
        self.sizes: dict[str, int] = {}
        self.told: dict[tuple[str, str], int] = {}
        self.assumed: list[str] = []
        self.emptied = 0
        self._place = ""

    def phase(self, name: str, part: str = "") -> None:
        """Close the part before."""
        self.close()
        self._place = f"{name}/{part}" if part else name

    def close(self) -> None:
        """Note the peak of the part that ends here."""
        if self._place:
            before = self.peaks.get(self._place, 0)
            self.peaks[self._place] = max(before, self.ledger.peak)
        self.ledger.reset()

    def tag(self, tensors: Iterable[torch.Tensor], category: str) -> None:
        """Count the bytes of a category, each storage once."""
        seen = self.tags.setdefault(category, set())
        listed = list(tensors)
        sizes = {one.untyped_storage()._cdata: one.untyped_storage().nbytes() for one in listed}
        self.told[self._place, category] = sum(sizes.values())
        for tensor in listed:
            storage = tensor.untyped_storage()
            if storage._cdata not in seen:
                seen.add(storage._cdata)
                self.sizes[category] = self.sizes.get(category, 0) + storage.nbytes()

    def assume(self, sentence: str) -> None:
        """Keep it."""
        self.assumed.append(sentence)

    def empty_cache(self) -> None:
        """Count it."""
        self.emptied += 1
