"""CUDA streams and events of the fake card.

Nothing runs, so nothing waits; but each thread has a current stream, the allocator keeps a pool of
blocks for each, and `Tensor.record_stream` delays when a block is used again. So streams have
numbers: 0 is the default one, others count up as they are made.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


class Streams:
    """The streams of one card: which is current in which thread, and how they are made."""

    def __init__(self, changed: Callable[[int], None]) -> None:
        """Begin with the default stream; `changed` hears the number of each that is taken."""
        self._changed = changed
        self._numbers = itertools.count(1)
        self._here = threading.local()
        self.kind = _kind_of(self)
        self.default = self.kind(stream_id=0)

    def next_number(self) -> int:
        """Return the number of a new stream."""
        return next(self._numbers)

    @property
    def current(self) -> Stream:
        """The current stream of this thread."""
        found: Stream = getattr(self._here, "stream", self.default)
        return found

    @property
    def number(self) -> int:
        """The number of the current stream of this thread."""
        return self.current.stream_id

    def use(self, stream: Stream | None) -> None:
        """Let a stream be current in this thread."""
        if stream is not None:
            self._here.stream = stream
            self._changed(stream.stream_id)

    def answers(self) -> dict[str, object]:
        """Return what `torch.cuda` answers about streams, by name."""
        return {
            "current_stream": lambda *_arguments: self.current,
            "default_stream": lambda *_arguments: self.default,
            "set_stream": self.use,
            "stream": _on,
            "StreamContext": _On,
            "Stream": self.kind,
            "Event": Event,
        }


class Stream:
    """A CUDA stream on which nothing waits."""

    def __init__(self, streams: Streams, number: int | None = None) -> None:
        """Make a stream; without a number it is a new one."""
        self._streams = streams
        self.stream_id = self.cuda_stream = streams.next_number() if number is None else number
        self.device_index = 0
        self.device_type = 1
        self.device = torch.device("cuda", 0)
        self.priority = 0
        self._before: list[Stream] = []

    def __eq__(self, other: object) -> bool:
        """Compare numbers."""
        return isinstance(other, Stream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        """Hash the number."""
        return hash(self.stream_id)

    def query(self) -> bool:
        """Say that all is done."""
        return True

    def is_capturing(self) -> bool:
        """Say that no graph is captured."""
        return False

    def synchronize(self) -> None:
        """Wait for nothing."""

    def wait_stream(self, _other: object) -> None:
        """Wait for nothing."""

    def wait_event(self, _event: object) -> None:
        """Wait for nothing."""

    def record_event(self, event: Event | None = None) -> Event:
        """Return the event."""
        return event or Event()

    def __enter__(self) -> Stream:  # noqa: PYI034 - torch's own returns the stream
        """Run on this stream."""
        self._before.append(self._streams.current)
        self._streams.use(self)
        return self

    def __exit__(self, *_raised: object) -> None:
        """Leave it."""
        self._streams.use(self._before.pop())


def stream_of_node(operator: str, made_on: Callable[[int], int]) -> int:
    """Return the stream on which the node of autograd that runs now allocates, 0 without one.

    A second gradient is added to a first on the stream of the node that takes both
    (`torch/csrc/autograd/input_buffer.cpp`), while the node that made it counts as running.
    """
    node: Any = torch._C._current_autograd_node()
    if node is None:
        return 0
    own = made_on(node._sequence_nr())
    if not operator.startswith("aten.add."):
        return own
    takers = {made_on(taker._sequence_nr()) for taker, _ in node.next_functions if taker}
    return takers.pop() if len(takers) == 1 else own


def _on(stream: Stream | None) -> _On:
    """Return a context: `torch.cuda.stream`, which is a function and no class."""
    return _On(stream)


def _kind_of(streams: Streams) -> Callable[..., Stream]:
    """Return the class of a card's streams, made as `torch.cuda.Stream` is."""

    class Made(Stream):
        def __init__(self, *_arguments: object, **named: Any) -> None:
            super().__init__(streams, named.get("stream_id"))

    return Made


class _On:
    """Lets a stream be current in this thread; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self._stream = stream

    def __enter__(self) -> None:
        if self._stream is not None:
            self._stream.__enter__()

    def __exit__(self, *_raised: object) -> None:
        if self._stream is not None:
            self._stream.__exit__()


class Event:
    """A CUDA event that has happened."""

    def __init__(self, *_arguments: object, **_named: object) -> None:
        """Make an event."""

    def record(self, _stream: object = None) -> None:
        """Happen."""

    def wait(self, _stream: object = None) -> None:
        """Wait for nothing."""

    def query(self) -> bool:
        """Say that it has happened."""
        return True

    def synchronize(self) -> None:
        """Wait for nothing."""

    def elapsed_time(self, _other: object) -> float:
        """Return no time."""
        return 0.0


def recording(used_on: Callable[[torch.Tensor, int], None]) -> Callable[..., None]:
    """Return what replaces `Tensor.record_stream`."""

    def record_stream(tensor: torch.Tensor, stream: Any) -> None:
        used_on(tensor, int(stream.stream_id))

    return record_stream
