"""The fake card: shim, memory, operators and `torch.cuda`, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.worker.fake.attention import Attention
from oomdoctor.worker.fake.bitsandbytes_kernels import BitsAndBytes
from oomdoctor.worker.fake.delegates import delegates
from oomdoctor.worker.fake.early_stop import EarlyStop
from oomdoctor.worker.fake.facade import Facade
from oomdoctor.worker.fake.kernels import Kernels
from oomdoctor.worker.fake.memory import FakeMemory
from oomdoctor.worker.fake.special import Special
from oomdoctor.worker.fake.tracker import Tracker
from oomdoctor.worker.fake.values import Values
from oomdoctor.worker.fake.workspaces import Workspaces

if TYPE_CHECKING:
    from oomdoctor.model.job import CardSpec
    from oomdoctor.worker.fake.shim import Shim


class FakeCard:
    """A card that torch takes for one of its own, until it is left."""

    def __init__(self, card: CardSpec, shim: Shim, *, blind: bool = False) -> None:
        """Prepare a card; `blind` as in `Values`."""
        self._shim = shim
        self.tracker = Tracker()
        self.memory = FakeMemory(self.tracker)
        self.tracker.memory = self.memory
        self.values = Values(self.memory, self.tracker.assume, blind=blind)
        self.workspaces = Workspaces(self.tracker, card, delegates())
        self.kernels = Kernels(self.memory, self.values, self.workspaces)
        self.kernels.special = Special(self.kernels).table()
        self.attention = Attention(card.capability)
        self._bitsandbytes = BitsAndBytes()
        self._early_stop = EarlyStop()
        self._facade = Facade(card, self.tracker, self.memory)

    def __enter__(self) -> FakeCard:  # noqa: PYI034 - not made to be derived from
        """Let torch see the card."""
        self._shim.install()
        self._shim.keep(self.memory)
        self._facade.install()
        self.kernels.install()
        for key in ("AutogradCUDA", "CUDA"):
            self.kernels.override("aten::scaled_dot_product_attention", self.attention, key)
        self._bitsandbytes.install()
        self._early_stop.install()
        return self

    def conclude(self) -> None:
        """State what the trace left out."""
        for sentence in self.workspaces.unknown:
            self.tracker.assume(sentence)

    def __exit__(self, *_raised: object) -> None:
        """Take the card away; tensors on it can still be freed."""
        self._early_stop.remove()
        self._bitsandbytes.remove()
        self.tracker.close()
        self.kernels.remove()
        self._facade.remove()
