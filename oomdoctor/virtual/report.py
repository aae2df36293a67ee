"""What a virtual run showed, what was taken for granted in it, and what lies outside of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.outside import CONTEXT
from oomdoctor.record import dataclass
from oomdoctor.units import format_size
from oomdoctor.virtual.outside import communicator_words, context_words
from oomdoctor.virtual.wheels import NEWEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.virtual.card import VirtualCard
    from oomdoctor.virtual.unmodelled import Unmodelled
    from oomdoctor.virtual.usage import CardUsage

CHECKED = (
    "the allocator's figures are PyTorch's own; of what was compared with real cards, "
    "docs/virtual.md has a table"
)
FOLLOWS_VALUES = (2, 9)
NOT_FOLLOWED = (
    "with torch {}.{} no values are followed (that needs 2.9): a mask that the program computes "
    "has all its rows, which can be more than on a card"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualReport:
    """The cards, their use, and the calls and values that nobody models.

    `torch` is its version, None where that is not known.
    """

    cards: tuple[VirtualCard, ...]
    usage: tuple[CardUsage, ...]
    unmodelled: Unmodelled
    torch: tuple[int, int] | None = None

    def sentences(self) -> Iterator[str]:
        """Yield what a reader of the run has to know, the figures first."""
        yield (
            "nothing was computed: losses and texts mean nothing, memory is counted, and tensors "
            "that were saved are not kept"
        )
        for number, (card, use) in enumerate(zip(self.cards, self.usage, strict=True)):
            yield f"card {number}, {_figures(card, use)}"
        for card, use in zip(self.cards, self.usage, strict=True):
            doubt = _doubt(card, use)
            if doubt:
                yield doubt
        yield from self._of_the_run()
        yield from self.unmodelled.sentences()
        yield CHECKED

    def assumptions(self) -> Iterator[str]:
        """Yield what was taken for granted, alike for all runs of which it is alike."""
        yield from self._of_the_run()
        yield from self.unmodelled.sentences(counts=False)

    def _of_the_run(self) -> Iterator[str]:
        if self.torch is not None and self.torch < FOLLOWS_VALUES:
            yield NOT_FOLLOWED.format(*self.torch)
        elif self.torch is not None and self.torch > NEWEST:
            yield f"nobody has tried torch {self.torch[0]}.{self.torch[1]} on a virtual card so far"
        yield context_words(self.cards[0].context_bytes)
        if any(one.startswith("ncclComm") for one in self.unmodelled.assumed):
            yield communicator_words(self.cards[0])

    def as_data(self) -> dict[str, object]:
        """Return the same for machines: `virtual.json` of a bundle."""
        return {
            "schema": 1,
            "cards": [
                {
                    "name": card.name,
                    "total_bytes": card.total_bytes,
                    "context_bytes": card.context_bytes,
                    "context_band_bytes": list(CONTEXT),
                    "others_bytes": card.others_bytes,
                    "communicator_bytes": card.communicator_bytes,
                    "peak_bytes": use.peak_bytes,
                    "refused": use.refused,
                }
                for card, use in zip(self.cards, self.usage, strict=True)
            ],
            "refused": list(self.unmodelled.refused),
            "ignored": list(self.unmodelled.ignored),
            "assumed": list(self.unmodelled.assumed),
            "missing": list(self.unmodelled.missing),
            "reads": [{"where": one.where, "times": one.times} for one in self.unmodelled.reads],
        }


def _figures(card: VirtualCard, use: CardUsage) -> str:
    total = format_size(card.total_bytes)
    if not use.peak_bytes:
        return f"{card.name} of {total}: not used"
    said = f"{card.name}: at most {format_size(use.peak_bytes)} of {total} in use"
    if card.others_bytes:
        said += f", {format_size(card.others_bytes)} of it by others"
    if use.refused:
        said += f"; the driver refused {use.refused} allocations"
    return said


def _doubt(card: VirtualCard, use: CardUsage) -> str | None:
    """Say where a context as large or as small as real ones would have turned the result round."""
    left = card.total_bytes - use.peak_bytes
    more = CONTEXT[1] - card.context_bytes
    if use.peak_bytes and not use.refused and left < more:
        return (
            f"it fitted with {format_size(left)} to spare: with a context of "
            f"{format_size(CONTEXT[1])} it would not have, or have had to free caches"
        )
    return None
