"""What is known of the values on the fake card, and what is assumed where nothing is.

Small tensors whose values come from the host (token ids, masks, labels, positions) have a *shadow*:
a copy on the host that follows each operator whose inputs are all known. So `mask.all().item()`,
the number of labels, `nonzero` of a mask and the like are what they are on a card.
What hangs on weights or activations is not known, and an answer is assumed:

| asked | assumed |
|---|---|
| `.item()` of a truth value | False; of `all(...)`: True |
| `.item()` of a number | 1.0 or 0 |
| `topk`, `sort` (routers) | rows take turns, so that every expert gets its share |
| `argmax`, `multinomial` (next tokens) | a token in the middle of the vocabulary |
| `nonzero`, `masked_select`, a mask as index | every element is selected: an upper bound |
| `unique` | no value comes twice |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.fake.memory import base_of
from oomdoctor.worker.fake.shadows import Shadows, most_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch._ops import OpOverload

    from oomdoctor.worker.fake.memory import FakeMemory

ONLY_WRITES = ("fill_.", "zero_")
BALANCED = ("topk", "sort")
CHOSEN = ("argmax", "argmin", "multinomial")


class Values:
    """Shadows of small tensors, and the assumptions made where there is none.

    With `blind`, nothing is followed and every answer is zero or empty: what a card answers
    whose kernels do not run.
    """

    def __init__(
        self, memory: FakeMemory, assume: Callable[[str], None], *, blind: bool = False
    ) -> None:
        """Know nothing yet."""
        self._memory = memory
        self._assume = assume
        self._blind = blind
        self._shadows = Shadows()
        memory.on_free = self._shadows.forget

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return the values of a tensor of the card, None where they are not known."""
        if tensor.device.type == "cpu":
            return tensor
        if not self._shadows:
            return None
        flat = self._shadows.get(base_of(tensor))
        if flat is None:
            return None
        typed = flat.view(tensor.dtype)
        return typed.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def learn(self, tensor: torch.Tensor, values: torch.Tensor) -> None:
        """Take down the values of a tensor of the card, if it is small enough."""
        place = self._place(tensor)
        if place is not None:
            place.copy_(values)

    def _place(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return where a tensor's values can be written down, made now where it was not there."""
        known = self.of(tensor)
        if known is not None:
            return known
        address = base_of(tensor)
        size = self._memory.sizes.get(address, 0)
        if size > most_bytes(tensor) or size % tensor.itemsize:
            return None
        if tensor.numel() * tensor.itemsize < size:
            return None  # the rest of the storage would stay unknown
        self._shadows.make(address, size)
        return self.of(tensor)

    def blind_to(self, source: torch.Tensor) -> bool:
        """Say that what is on the card is not to be followed."""
        return self._blind and source.device.type == "cuda"

    def lose(self, tensor: torch.Tensor) -> None:
        """Forget a tensor's values: something unknown was written into it."""
        if self._shadows:
            self._shadows.forget(base_of(tensor))

    def follow(
        self,
        operator: OpOverload,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        result: object,
    ) -> None:
        """Do on the shadows what the operator did on the card."""
        if self._blind:
            return
        results = [result] if isinstance(result, torch.Tensor) else result
        if not isinstance(results, (list, tuple)):
            return
        small = [
            one
            for one in results
            if isinstance(one, torch.Tensor) and one.numel() * one.itemsize <= most_bytes(one)
        ]
        if not small:
            return
        name = operator._schema.name[operator._schema.name.index("::") + 2 :]
        if self._run(operator, name, arguments, named, results):
            return
        for one in small:
            self.lose(one)
        self._guess(name, arguments, small)

    def _run(
        self,
        operator: OpOverload,
        name: str,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        results: Any,
    ) -> bool:
        """Run the operator on shadows; False where an input is unknown."""
        if torch.Tag.nondeterministic_seeded in operator.tags:
            return False
        blank = {id(one) for one in results} if _only_writes(operator, name) else set()
        twins: list[Any] = []
        for one in (*arguments, *named.values()):
            known, twin = self._twin(one, blank)
            if not known:
                return False
            twins.append(twin)
        count = len(arguments)
        try:
            made = operator(*twins[:count], **dict(zip(named, twins[count:], strict=True)))
        except (RuntimeError, NotImplementedError):
            return False  # no such kernel on the host
        made_list = [made] if isinstance(made, torch.Tensor) else made
        for one, values in zip(results, made_list or (), strict=False):
            if isinstance(one, torch.Tensor) and isinstance(values, torch.Tensor):
                place = self._place(one)
                if place is not None and place.data_ptr() != values.data_ptr():
                    place.copy_(values)
        return True

    def _twin(self, value: Any, blank: set[int]) -> tuple[bool, Any]:
        """Return whether an argument is known, and its shadow."""
        if isinstance(value, torch.Tensor):
            found = self._place(value) if id(value) in blank else self.of(value)
            return found is not None, found
        if isinstance(value, (list, tuple)):
            pairs = [self._twin(one, blank) for one in value]
            return all(known for known, _ in pairs), [twin for _, twin in pairs]
        if isinstance(value, torch.device):
            return True, torch.device("cpu")
        return True, value

    def _guess(self, name: str, arguments: tuple[Any, ...], results: list[torch.Tensor]) -> None:
        """Assume values where a program's course usually hangs on them."""
        if name == "all" or _asks_for_finite(name, arguments):
            for one in results:
                self.learn(one, torch.ones((), dtype=one.dtype, device="cpu"))
        elif _asks_for_padding(name, arguments):
            for one in results:
                self.learn(one, torch.zeros((), dtype=one.dtype, device="cpu"))
        elif name in BALANCED or name in CHOSEN:
            source = arguments[0]
            for one in results:
                if one.dtype == torch.int64 and one.numel():
                    self.learn(one, _choices(name, source, one))
                    self._assume(CHOICES[name in CHOSEN])

    def on_host(
        self, operator: OpOverload, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Any:
        """Return the results of an operator whose shapes hang on values, run on the host."""
        twins: list[Any] = []
        for one in (*arguments, *named.values()):
            known, twin = self._twin(one, set())
            if not known:
                self._assume(f"{operator} was given values of which none come twice")
                twin = torch.arange(one.numel(), device="cpu").view(one.shape).to(one.dtype)
            twins.append(twin)
        count = len(arguments)
        return operator(*twins[:count], **dict(zip(named, twins[count:], strict=True)))

    def item(self, tensor: torch.Tensor) -> bool | int | float:
        """Return the value of a tensor of one element, assumed where it is not known."""
        known = self.of(tensor)
        if known is not None:
            value: bool | int | float = known.item()
            return value
        if tensor.dtype == torch.bool:
            answer: bool | int | float = False
        elif tensor.is_floating_point():
            answer = 0.0 if self._blind else 1.0
        else:
            answer = 0
        kind = "truth value" if tensor.dtype == torch.bool else "number"
        self._assume(f"a {kind} computed on the card was read and assumed to be {answer}")
        return answer

    def selected(self, mask: torch.Tensor) -> torch.Tensor:
        """Return the indices of a mask's true elements, one row each, on the host."""
        known = self.of(mask)
        if known is not None:
            return known.nonzero()
        if self._blind:
            return torch.empty((0, mask.dim()), dtype=torch.int64, device="cpu")
        self._assume("a mask computed on the card was assumed to select every element")
        return torch.ones(mask.shape, dtype=torch.bool, device="cpu").nonzero()


MOST_CHOICES = 1024  # what has more is a vocabulary: its first tokens are special ones
CHOICES = (
    "what values computed on the card choose (experts, for one) was assumed to be spread evenly",
    "tokens chosen by the model were assumed not to end the text",
)


def _only_writes(operator: OpOverload, name: str) -> bool:
    """Say that what the operator writes is not read by it."""
    return operator._schema.overload_name.endswith(("out", "values", "values_stable")) or any(
        name.startswith(one.rstrip(".")) for one in ONLY_WRITES
    )


def _asks_for_finite(name: str, arguments: tuple[Any, ...]) -> bool:
    """Say that a comparison is one of those in `isfinite`: values are taken to be finite."""
    if len(arguments) < 2:
        return False
    if name == "eq":
        return arguments[0] is arguments[1]
    # another tensor is not compared here: that would be one more operator of the card
    return name == "ne" and isinstance(arguments[1], float) and arguments[1] == float("inf")


def _asks_for_padding(name: str, arguments: tuple[Any, ...]) -> bool:
    """Say that numbers are compared with zero: pictures of zeros alone are padding, others not."""
    return (
        name == "eq"
        and len(arguments) > 1
        and isinstance(arguments[1], float)
        and arguments[1] == 0.0
    )


def _choices(name: str, source: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Return indices into `source`: spread evenly, or one in the middle."""
    width = max(source.shape, default=1) if name in CHOSEN else max(1, source.shape[-1])
    if name in CHOSEN:
        return torch.full(chosen.shape, width // 2, dtype=torch.int64, device="cpu")
    if width > MOST_CHOICES:
        return (torch.arange(chosen.shape[-1], device="cpu") + width // 2).expand(chosen.shape)
    return (torch.arange(chosen.numel(), device="cpu") % width).view(chosen.shape)
