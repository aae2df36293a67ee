"""How many tokens are computed for nothing, by how rows are padded and batched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from oomdoctor.data.lengths import Lengths

MULTIPLE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A way of padding: its key, its name, the tokens computed in an epoch, the real ones."""

    key: str
    name: str
    computed: int
    tokens: int
    in_force: bool = False

    @property
    def waste(self) -> float:
        """Return the share of the computed tokens that are padding."""
        return max(0.0, 1.0 - self.tokens / self.computed) if self.computed else 0.0


def strategies(lengths: Lengths, *, batch: int, limit: int, in_force: str) -> tuple[Strategy, ...]:
    """Return what each strategy costs; `lengths` are those after truncation.

    Random batches are an exact mean over all of them; by length is the order of a full sort.
    """
    count = lengths.count
    rows = (
        ("max_length", f"to the maximum ({limit:,})", count * limit),
        ("longest", "to the longest of the batch", count * lengths.expected_longest(batch)),
        (
            "multiple_of_8",
            "to the longest, in multiples of 8",
            count * lengths.expected_longest(batch, padded=_multiple),
        ),
        ("by_length", "to the longest, rows batched by length", lengths.sorted_tokens(batch)),
    )
    return tuple(
        Strategy(
            key=key,
            name=name,
            computed=max(round(computed), lengths.tokens),
            tokens=lengths.tokens,
            in_force=key == in_force,
        )
        for key, name, computed in rows
    )


def _multiple(length: int) -> int:
    return -(-length // MULTIPLE) * MULTIPLE
