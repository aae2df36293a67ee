"""What `torch.cuda` answers for the fake card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.fake.cuda_streams import recording
from oomdoctor.worker.fake.resizing import resizing

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.model.job import CardSpec
    from oomdoctor.worker.fake.memory import FakeMemory
    from oomdoctor.worker.fake.tracker import Tracker


_QUIET = (
    *("_lazy_init", "init", "synchronize", "set_device", "set_rng_state", "set_rng_state_all"),
    *("manual_seed", "manual_seed_all", "seed", "seed_all", "_sleep"),
    *("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_accumulated_memory_stats"),
    *("ipc_collect", "set_per_process_memory_fraction", "_lazy_call"),
)
"""Functions that change nothing on a card that is not there."""


class Properties:
    """The properties of the card, as torch names them."""

    def __init__(self, card: CardSpec) -> None:
        """Take over what is known of the card."""
        self.name = card.name
        self.major, self.minor = card.capability
        self.total_memory = card.total_bytes
        self.multi_processor_count = card.processors
        self.warp_size = 32
        self.is_integrated = False
        self.is_multi_gpu_board = False
        self.gcnArchName = card.name
        self.L2_cache_size = 40 << 20
        self.max_threads_per_multi_processor = 2048
        self.regs_per_multiprocessor = 65536
        self.shared_memory_per_block = 49152
        self.shared_memory_per_block_optin = 166912
        self.uuid = "00000000-0000-0000-0000-000000000000"


class Generator(torch.Generator):
    """A generator of random numbers; one of a card is one of the host that names the card."""

    _named: torch.device

    def __new__(cls, device: str | torch.device = "cpu") -> Generator:  # noqa: PYI034 - torch's own
        """Make a generator on the host."""
        made = super().__new__(cls)
        made._named = torch.device(device)
        return made

    @property
    def device(self) -> torch.device:
        """Return the device that was asked for."""
        return self._named


def answers(card: CardSpec, tracker: Tracker) -> dict[str, object]:
    """Return what replaces the functions of `torch.cuda`, by name."""
    properties = Properties(card)

    # each name gets a function of its own: dynamo's tables refuse one function of two names
    def always(value: object) -> Callable[..., Any]:
        return lambda *_arguments, **_named: value

    def yes() -> Callable[..., Any]:
        return always(value=True)

    def no() -> Callable[..., Any]:
        return always(value=False)

    def free() -> tuple[int, int]:
        return max(0, card.total_bytes - tracker.allocated), card.total_bytes

    def random_state(*_arguments: object, **_named: object) -> torch.Tensor:
        return torch.zeros(16, dtype=torch.uint8, device="cpu")

    return {
        **{name: always(None) for name in _QUIET},
        "is_available": yes(),
        "is_initialized": yes(),
        "_is_compiled": yes(),
        "_is_in_bad_fork": no(),
        "is_current_stream_capturing": no(),
        "device_count": always(1),
        "current_device": always(0),
        "get_device_name": always(card.name),
        "get_device_capability": always(card.capability),
        "get_device_properties": always(properties),
        "get_arch_list": always([f"sm_{card.capability[0]}{card.capability[1]}"]),
        "is_bf16_supported": always(card.capability >= (8, 0)),
        "is_tf32_supported": always(card.capability >= (8, 0)),
        "can_device_access_peer": no(),
        "get_rng_state": random_state,
        "get_rng_state_all": lambda: [random_state()],
        "initial_seed": always(0),
        "mem_get_info": lambda *_arguments: free(),
        "memory_allocated": lambda *_arguments, **_named: tracker.allocated,
        "max_memory_allocated": lambda *_arguments, **_named: tracker.peak,
        "memory_reserved": lambda *_arguments, **_named: tracker.allocated,
        "max_memory_reserved": lambda *_arguments, **_named: tracker.peak,
        "memory_stats": lambda *_arguments: _statistics(tracker),
        "empty_cache": tracker.empty_cache,
        **tracker.streams.answers(),
    }


def _statistics(tracker: Tracker) -> dict[str, int]:
    return {
        "allocated_bytes.all.current": tracker.allocated,
        "allocated_bytes.all.peak": tracker.peak,
        "reserved_bytes.all.current": tracker.allocated,
        "reserved_bytes.all.peak": tracker.peak,
    }


class _Ranges:
    """Ranges of a profiler (NVTX), which nobody records."""

    def __getattr__(self, _name: str) -> Callable[..., int]:
        return lambda *_arguments: 0


class Facade:
    """Puts the answers into torch, and takes them out again."""

    def __init__(self, card: CardSpec, tracker: Tracker, memory: FakeMemory) -> None:
        """Prepare the answers for a card."""
        self._card = card
        self._memory = memory
        self._tracker = tracker
        self._before: list[tuple[object, str, object]] = []

    def install(self) -> None:
        """Replace what asks the driver."""
        new = answers(self._card, self._tracker)
        for name, value in new.items():
            if hasattr(torch.cuda, name):
                self._set(torch.cuda, name, value)
        for module in (torch.cuda.random, torch.cuda.memory, torch.cuda.streams):
            for name, value in new.items():
                if hasattr(module, name):
                    self._set(module, name, value)
        self._set(torch, "Generator", Generator)
        self._set(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
        self._set(torch.backends.cuda, "is_built", lambda: True)
        self._set(torch.cuda.nvtx, "_nvtx", _Ranges())
        self._set(torch.Tensor, "record_stream", recording(self._tracker.used_on))
        if hasattr(torch, "accelerator"):  # came with 2.6
            for name in ("current_stream", "synchronize"):
                self._set(torch.accelerator, name, new[name])
        self._set(torch.Tensor, "pin_memory", lambda tensor, *_arguments: tensor)
        plain = torch.UntypedStorage.resize_
        self._set(torch.UntypedStorage, "resize_", resizing(self._memory, plain))
        # a CUDA build has it, and would ask a driver that need not be there
        self._set(torch._C, "_cuda_getCurrentRawStream", lambda _device: 0)

    def remove(self) -> None:
        """Put back what was there."""
        while self._before:
            owner, name, value = self._before.pop()
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)

    def _set(self, owner: object, name: str, value: object) -> None:
        self._before.append((owner, name, getattr(owner, name, None)))
        setattr(owner, name, value)
