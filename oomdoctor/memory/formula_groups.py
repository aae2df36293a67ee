"""Runs of equal layers, of which some are walked and the others counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomdoctor.memory.formula_gather import Unit
    from oomdoctor.memory.formula_params import Layer
    from oomdoctor.memory.tape import Block, Param


class Group:
    """A run of equal layers: the weights of those that are walked, and how many are not."""

    def __init__(self, layers: list[Layer], weights: list[list[Param]], skipped: int) -> None:
        """Keep `layers` (walked) and the number of layers like the second between them."""
        self.layers = layers
        self.weights = weights
        self.skipped = skipped
        self.bulk_grads: Block | None = None
        self.units: list[Unit] = []
        self.bulk: Unit | None = None

    @property
    def per_layer(self) -> list[Param]:
        """Return the weights of one of the layers that are not walked."""
        return self.weights[min(1, len(self.weights) - 1)]
