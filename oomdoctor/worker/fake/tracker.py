"""Writes the stream of a run: what was allocated by which operator of which module, and when.

It is the ledger of the fake memory and the observer of the run. Modules are followed by hooks; in
a backward pass the module is that whose forward made the node: each module's forward is a range
of autograd's sequence numbers.
"""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch

from oomdoctor.memory.stream import Allocation, Mark, Stream
from oomdoctor.worker.fake.cuda_streams import Streams, stream_of_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Protocol

    class Finder(Protocol):
        """Finds the allocation behind a tensor."""

        def number_of(self, tensor: torch.Tensor) -> int | None:
            """Return its number, None where there is none."""


UNNAMED = ("aten.empty", "aten.new_empty")
WORKSPACE, COMMUNICATION = "workspace", "communication"


T = TypeVar("T")


class _Ranges(Generic[T]):
    """To whom autograd's nodes belong, by their sequence numbers."""

    __slots__ = ("_nobody", "owners", "starts")

    def __init__(self, nobody: T) -> None:
        self.starts: list[int] = []
        self.owners: list[T] = []
        self._nobody = nobody

    def note(self, sequence: int, owner: T) -> None:
        """Note that nodes from this number on belong to an owner."""
        while self.starts and self.starts[-1] >= sequence:
            self.starts.pop()
            self.owners.pop()
        self.starts.append(sequence)
        self.owners.append(owner)

    def owner_of(self, sequence: int) -> T:
        """Return to whom a node belongs."""
        place = bisect_right(self.starts, sequence) - 1
        return self.owners[place] if place >= 0 else self._nobody


class _Thread:
    """Where one thread is: the modules that run, and the nodes that each made."""

    __slots__ = ("again", "made", "modules")

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.again: list[int] = []
        self.made = _Ranges("")

    def note(self, sequence: int) -> None:
        """Note that nodes from this number on belong to the module that runs now."""
        self.made.note(sequence, self.modules[-1] if self.modules else "")

    def owner_of(self, sequence: int) -> str:
        """Return the module that made a node."""
        return self.made.owner_of(sequence)


class Tracker:
    """A ledger for `FakeMemory`, an observer for a run, and in the end a Stream."""

    def __init__(self) -> None:
        """Start an empty stream."""
        self.memory: Finder | None = None
        self.streams = Streams(self._changed_stream)
        self._made_on = _Ranges(0)
        self._on: dict[int, int] = {}
        self.events: list[int] = []
        self.marks: list[Mark] = []
        self.assumptions: dict[str, None] = {}
        self.sizes: list[int] = []
        self._operators: list[str] = []
        self._modules: list[str] = []
        self._places: list[tuple[str, str]] = []
        self._categories: dict[int, str] = {}
        self._place = ("", "")
        self._again: list[tuple[int, int]] = []  # made by a forward in a backward, which ended at
        self._unnamed = False
        self._names: weakref.WeakKeyDictionary[torch.nn.Module, str] = weakref.WeakKeyDictionary()
        self._threads: dict[int, _Thread] = {}
        self._main = threading.get_ident()
        self._trained: list[list[weakref.ref[torch.Tensor]]] = []
        self._handles: list[Any] = []
        self.allocated = 0
        self.peak = 0

    # --- the ledger

    def alloc(self, size: int, operator: str) -> int:
        """Take down an allocation and return its number."""
        number = len(self.sizes)
        self.sizes.append(size)
        self._operators.append(operator)
        self._unnamed = operator.startswith(UNNAMED)
        self._modules.append(self._module())
        if self._place[1] == "backward":
            thread = self._threads.get(threading.get_ident())
            if thread is not None and thread.modules:
                thread.again.append(number)
        self._places.append(self._place)
        self._note_stream(number, operator)
        self.events.append(number)
        self.allocated += -(-size // 512) * 512
        self.peak = max(self.peak, self.allocated)
        return number

    def free(self, number: int) -> None:
        """Take down that an allocation is freed."""
        self.events.append(~number)
        self.allocated -= -(-self.sizes[number] // 512) * 512

    def take(self, size: int, name: str) -> int:
        """Take down memory that a kernel takes for itself, and return its number."""
        number = self.alloc(size, name)
        self._categories[number] = WORKSPACE
        return number

    def last_is_unnamed(self) -> bool:
        """Say that the last allocation is an empty tensor that nothing has written into."""
        return self._unnamed

    def name_last(self, number: int, operator: str) -> None:
        """Name what wrote into the last allocation, if that is the one with this number."""
        if number == len(self.sizes) - 1:
            self._operators[number] = operator
            self._unnamed = False
            self._note_stream(number, operator)

    def _changed_stream(self, stream: int) -> None:
        """Hear that a CUDA stream becomes the current one: the backward of what runs on it will."""
        if threading.get_ident() == self._main:
            self._made_on.note(torch.autograd._get_sequence_nr(), stream)

    def _note_stream(self, number: int, operator: str) -> None:
        on = self.streams.number
        if not on and self._made_on.starts:
            on = stream_of_node(operator, self._made_on.owner_of)
        if on:
            self._on[number] = on

    def _module(self) -> str:
        """Return the module that runs, or whose backward runs, in this thread."""
        thread = self._threads.get(threading.get_ident())
        if thread is not None and thread.modules:
            return thread.modules[-1]
        node = torch._C._current_autograd_node()
        if node is None:
            return ""
        main = self._threads.get(self._main)
        return main.owner_of(node._sequence_nr()) if main is not None else ""

    # --- the observer

    def phase(self, name: str, part: str = "") -> None:
        """Hear that a phase, or a part of it, begins."""
        before = self._place
        if before[0] == "load" != name:
            self._name_weights()
        if before[1] == "backward" and part != "backward":
            self._tag_gradients()
        at = len(self.events)
        if name != before[0]:
            self.marks.append(Mark(at, "phase", name))
        if part or name == before[0]:
            self.marks.append(Mark(at, "part", part))
        self._place = (name, part)

    def tag(self, tensors: Iterable[torch.Tensor], category: str) -> None:
        """Hear what tensors are for."""
        held = tuple(tensors)
        if category in ("weights", "adapter"):
            self._trained.append([weakref.ref(one) for one in held])
        for tensor in held:
            here = getattr(tensor, "_local_tensor", tensor)  # this rank's part of a DTensor
            number = self.memory.number_of(here) if self.memory is not None else None
            if number is not None:
                self._categories.setdefault(number, category)

    def _tag_gradients(self) -> None:
        for references in self._trained:
            alive = [one for one in (known() for known in references) if one is not None]
            self.tag((one.grad for one in alive if one.grad is not None), "gradient")

    def _name_weights(self) -> None:
        """Give each weight the module that it belongs to: it was made outside of any."""
        if self.memory is None:
            return
        for module, name in self._names.items():
            for tensor in (*module._parameters.values(), *module._buffers.values()):
                if tensor is not None and not hasattr(tensor, "_local_tensor"):
                    number = self.memory.number_of(tensor)
                    if number is not None and not self._modules[number]:
                        self._modules[number] = name

    def assume(self, sentence: str) -> None:
        """Hear what had to be decided without a value."""
        self.assumptions.setdefault(sentence)

    def empty_cache(self) -> None:
        """Hear that the allocator's cache is emptied here."""
        self.marks.append(Mark(len(self.events), "empty-cache"))

    def used_on(self, tensor: torch.Tensor, stream: int) -> None:
        """Hear that a block is used on another CUDA stream."""
        number = self.memory.number_of(tensor) if self.memory is not None else None
        if number is not None:
            self.marks.append(Mark(len(self.events), "use", str(stream), number))

    # --- modules

    def model(self, model: torch.nn.Module) -> None:
        """Name a model's modules; called again where it is wrapped."""
        if not self._handles:
            self._watch()
        for name, module in model.named_modules():
            self._names[module] = name.replace("_fsdp_wrapped_module.", "")

    def _watch(self) -> None:
        hooks = torch.nn.modules.module
        self._handles.append(hooks.register_module_forward_pre_hook(self._enter))
        self._handles.append(hooks.register_module_forward_hook(self._leave, always_call=True))

    def _enter(self, module: torch.nn.Module, _arguments: object) -> None:
        name = self._names.get(module)
        if name is None:
            name = type(module).__name__
        thread = self._threads.setdefault(threading.get_ident(), _Thread())
        thread.modules.append(name)
        thread.note(torch.autograd._get_sequence_nr())

    def _leave(self, _module: torch.nn.Module, _arguments: object, _result: object) -> None:
        # a forward hook that returns something would replace the module's result
        thread = self._threads.get(threading.get_ident())
        if thread is not None and thread.modules:
            thread.modules.pop()
            thread.note(torch.autograd._get_sequence_nr())
            if thread.again and not thread.modules:
                self._again += [(number, len(self.events)) for number in thread.again]
                thread.again.clear()

    def close(self) -> None:
        """Stop following modules."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    # --- the result

    def stream(self, origin: str, facts: Mapping[str, object]) -> Stream:
        """Return what was written."""
        categories, on = self._categories, self._on
        died = {~one: at for at, one in enumerate(self.events) if one < 0}
        for number, ended in self._again:  # computed again for a backward, which is to read it
            if died.get(number, ended) >= ended:
                categories.setdefault(number, "activation")
        allocations = [
            Allocation(
                *(size, operator, module, *place),
                categories.get(number) or (COMMUNICATION if number in on else ""),
                on.get(number, 0),
            )
            for number, (size, operator, module, place) in enumerate(
                zip(self.sizes, self._operators, self._modules, self._places, strict=True)
            )
        ]
        return Stream(
            allocations=allocations,
            events=list(self.events),
            marks=tuple(self.marks),
            origin=origin,
            assumptions=tuple(self.assumptions),
            facts=facts,
        )
