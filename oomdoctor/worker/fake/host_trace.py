"""The way out where torch has no fake card: the job on fake tensors of the host.

torch's own FakeTensorMode runs the job as if on the CPU, and a dispatch mode counts its storages.
What only a card has is missing: its choice of attention, the kernels' workspaces, its autocast;
and a mode makes autograd add gradients out of place. On models that were compared, the peak was
lower by about one percent, so the stream says which engine it is from and its band is wider.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from oomdoctor.worker.fake.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from oomdoctor.memory.stream import Stream
    from oomdoctor.worker.errors import ShimFailedError
    from oomdoctor.worker.observer import Observer

NEUTRAL = {True: 1.0, False: 0}


class _Counting(TorchDispatchMode):
    """Tells a tracker of each storage that an operator makes, and of its end."""

    def __init__(self, tracker: Tracker) -> None:
        super().__init__()
        self._tracker = tracker
        self.owners: dict[int, int] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an operator and look at its results."""
        if func is torch.ops.aten._local_scalar_dense.default:
            return self._item(func, args[0])
        result = func(*args, **(kwargs or {}))
        for one in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(one, torch.Tensor):
                self._see(one, str(func))
        return result

    def _item(self, func: Any, tensor: torch.Tensor) -> Any:
        try:
            return func(tensor)
        except Exception:  # noqa: BLE001 - each version has its own error for "no value"
            answer = False if tensor.dtype == torch.bool else NEUTRAL[tensor.is_floating_point()]
            self._tracker.assume(f"a value was read and assumed to be {answer}")
            return answer

    def _see(self, tensor: torch.Tensor, operator: str) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.owners or not storage.nbytes():
            return
        number = self.owners[key] = self._tracker.alloc(storage.nbytes(), operator)
        weakref.finalize(storage, self._gone, key, number)

    def _gone(self, key: int, number: int) -> None:
        if self.owners.get(key) == number:
            del self.owners[key]
        self._tracker.free(number)


class _HostMemory:
    """Finds the allocation behind a fake tensor of the host, for the tracker's categories."""

    def __init__(self, mode: _Counting) -> None:
        self._mode = mode

    def number_of(self, tensor: torch.Tensor) -> int | None:
        return self._mode.owners.get(tensor.untyped_storage()._cdata)


def trace_on_host(
    run: Callable[[torch.device, Observer], None],
    *,
    origin: str,
    facts: Mapping[str, object],
    why: ShimFailedError,
) -> Stream:
    """Return the allocations of a run on fake tensors of the host."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    tracker = Tracker()
    counting = _Counting(tracker)
    tracker.memory = _HostMemory(counting)
    tracker.assume(
        f"the job was traced on the host, without the kernels of the card: {why.message}"
    )
    with FakeTensorMode(allow_non_fake_inputs=True), counting:
        run(torch.device("cpu"), tracker)
        events = len(tracker.events)
    tracker.close()
    del tracker.events[events:]
    return tracker.stream(origin, facts)
