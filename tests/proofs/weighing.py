"""Count bytes: what autograd saves for backward, and what is alive at the peak."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

torch = pytest.importorskip("torch")
dispatch = pytest.importorskip("torch.utils._python_dispatch")
pytree = pytest.importorskip("torch.utils._pytree")


def size(tensors: Iterable[Any]) -> int:
    """Return the bytes of all these tensors, each storage once."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    return sum(storages.values())


def saved_bytes(forward: Callable[[], Any], *, besides: Iterable[Any] = ()) -> int:
    """Return the bytes of the storages that `forward` leaves for the backward pass."""
    known = {tensor.untyped_storage().data_ptr() for tensor in besides}
    saved: dict[int, Any] = {}

    def pack(tensor: Any) -> Any:
        pointer = tensor.untyped_storage().data_ptr()
        if pointer not in known:
            saved[pointer] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = forward()
    total = sum(tensor.untyped_storage().nbytes() for tensor in saved.values())
    del out
    return total


class Peak(dispatch.TorchDispatchMode):
    """Follow every storage that an operator makes; `peak` is the most that was alive at once."""

    def __init__(self) -> None:
        """Begin with nothing alive."""
        super().__init__()
        self.live: dict[int, int] = {}
        self.now = 0
        self.peak = 0
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator and note what is new."""
        del types
        before = {t.untyped_storage()._cdata for t in _tensors((args, kwargs))}
        out = func(*args, **(kwargs or {}))
        for tensor in _tensors(out):
            storage = tensor.untyped_storage()
            key = storage._cdata
            if key not in before and key not in self.live and tensor.device.type != "meta":
                self._begin(key, storage)
        return out

    def _begin(self, key: int, storage: Any) -> None:
        self.live[key] = storage.nbytes()
        self.now += storage.nbytes()
        self.peak = max(self.peak, self.now)
        self.largest = max(self.largest, storage.nbytes())
        weakref.finalize(storage, self._end, key)

    def _end(self, key: int) -> None:
        self.now -= self.live.pop(key, 0)


def _tensors(tree: Any) -> list[Any]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
