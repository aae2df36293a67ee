"""What a run tells to whoever watches it: the tracer, or the recorder of a run on real tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch


class Observer(Protocol):
    """Hears where a run is and what its tensors are for."""

    def phase(self, name: str, part: str = "") -> None:
        """Say that a phase, or a part of it, begins: names of `memory.stream`."""

    def model(self, model: torch.nn.Module) -> None:
        """Give a model whose modules are to be named; called again where it is wrapped."""

    def tag(self, tensors: Iterable[torch.Tensor], category: str) -> None:
        """Say what tensors are for (weights, adapter, gradient, ...); those of no bytes are not."""

    def assume(self, sentence: str) -> None:
        """Report what had to be decided without a value."""

    def empty_cache(self) -> None:
        """Say that the loop empties the allocator's cache here."""


class Silent:
    """An observer that hears nothing: for runs whose memory somebody else counts."""

    def phase(self, name: str, part: str = "") -> None:
        """Pass over a phase."""

    def model(self, model: torch.nn.Module) -> None:
        """Pass over a model."""

    def tag(self, tensors: Iterable[torch.Tensor], category: str) -> None:
        """Pass over tensors."""

    def assume(self, sentence: str) -> None:
        """Pass over an assumption."""

    def empty_cache(self) -> None:
        """Pass over an emptied cache."""
