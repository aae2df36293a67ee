"""Write a memory snapshot of any size, as PyTorch would of a long training run with a leak.

    python benchmarks/snapshot_files.py FILE --size 200

The allocator model plays the run; its events go into the file at once, with as many frames, texts
and numbered objects for each as PyTorch writes. So a file of 2 GB needs little memory to write.
"""

from __future__ import annotations

import argparse
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_driver import Card
from oomdoctor.memory.allocator_snapshot import segments
from oomdoctor.memory.allocator_trace import Trace

if TYPE_CHECKING:
    from oomdoctor.memory.allocator_block import Block, PoolId

KIB, MIB = 1 << 10, 1 << 20
LAYERS = 24
LEAK_LINE = 22
LEAK_BYTES = 4 * KIB
TORCH = "/venv/lib/python3.12/site-packages/torch/"
DEPTH = 21
BATCH = 1000
LENGTHS = (128, 192, 256, 384, 448, 512, 640, 768)
START_US = 1_700_000_000_000_000


class Writer(Trace):
    """Takes the events of the allocator model and writes each into the file."""

    def __init__(self, file: BinaryIO) -> None:
        """Begin the pickle: a dictionary with a list that has the list of events."""
        super().__init__(0)
        self.file = file
        self.count = self.written = self.memo = 0
        self.part = ("setup", 10)
        self._texts: dict[str, bytes] = {}
        self._stacks: dict[tuple[str, int], bytes] = {}
        self.write(b"\x80\x04", self._open(b"}"), b"(", self._text("device_traces"))
        self.write(self._open(b"]"), self._open(b"]"))

    def write(self, *parts: bytes) -> None:
        """Write some bytes behind the others."""
        self.written += sum(map(len, parts))
        self.file.writelines(parts)

    def add(self, action: str, address: int, size: int, stream: int, pool: PoolId) -> None:
        """Write an event: the model calls it as it does a trace's."""
        if self.count % BATCH == 0:
            self.write(b"e(" if self.count else b"(")
        self.count += 1
        self.write(
            self._open(b"}"),
            b"(",
            *(self._text("action"), self._text(action)),
            *(self._text("device_free" if action == "oom" else "addr"), _number(address)),
            *(self._text("size"), _number(size), self._text("stream"), _number(stream)),
            *(self._text("time_us"), _number(START_US + 5 * self.count)),
            *(self._text("compile_context"), self._open(b"\x8c\x03N/A")),
            *(self._text("user_metadata"), self._text("")),
            *(self._text("pool_id"), self._value(pool)),
            *(self._text("frames"), self._frames()),
            b"u",
        )

    def end(self, cache: Allocator) -> None:
        """Write the segments, and the end."""
        self.write(b"ea" if self.count else b"a")
        self.write(self._text("segments"), self._value(segments(cache)))
        self.write(self._text("allocator_settings"), self._value({"expandable_segments": False}))
        self.write(self._text("external_annotations"), self._value([]), b"u.")

    def _open(self, sign: bytes) -> bytes:
        """Return the beginning of an object that has a number from then on."""
        self.memo += 1
        return sign + b"\x94"

    def _text(self, text: str) -> bytes:
        found = self._texts.get(text)
        if found is not None:
            return found
        self._texts[text] = _get(self.memo)
        packed = text.encode()
        return self._open(b"\x8c" + bytes([len(packed)]) + packed)

    def _frames(self) -> bytes:
        """Return the frames of the line that is at work; they are spelt out the first time."""
        found = self._stacks.get(self.part)
        start = self._open(b"]") + b"("
        if found is not None:
            return start + found + b"e"
        spelt, references = b"", b""
        for file, line, name in _stack(*self.part):
            references += _get(self.memo)
            spelt += self._value({"name": name, "filename": file, "line": line})
        self._stacks[self.part] = references
        return start + spelt + b"e"

    def _value(self, value: object) -> bytes:
        if isinstance(value, bool):
            return b"\x88" if value else b"\x89"
        if isinstance(value, int):
            return _number(value)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, tuple):
            first, second = value
            return self._open(_number(first) + _number(second) + b"\x86")
        if isinstance(value, dict):
            start = self._open(b"}") + b"("
            pairs = (self._value(one) for pair in value.items() for one in pair)
            return start + b"".join(pairs) + b"u"
        if not isinstance(value, list):
            raise TypeError(f"{type(value).__name__} is in no snapshot")
        parts = [self._open(b"]")]
        for at in range(0, len(value), BATCH):
            parts += [b"(", *map(self._value, value[at : at + BATCH]), b"e"]
        return b"".join(parts)


def _get(number: int) -> bytes:
    return b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)


def _number(value: int) -> bytes:
    if value < 256:
        return b"K" + bytes([value])
    if value < 1 << 16:
        return b"M" + struct.pack("<H", value)
    if value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    size = value.bit_length() // 8 + 1
    return b"\x8a" + bytes([size]) + value.to_bytes(size, "little")


def _stack(part: str, line: int) -> list[tuple[str, int, str]]:
    """Return the frames of a line: those of torch, the user's own, and C++ below."""
    own = [("/home/me/train.py", line, "main"), ("/home/me/train.py", 90, "<module>")]
    native = [(f"??{at}", 0, f"at::native::{part}_{at}(at::Tensor const&)") for at in range(8)]
    if part in ("setup", "batch", "leak"):
        inner: list[tuple[str, int, str]] = []
    elif part == "optimizer":
        inner = [(TORCH + "optim/adamw.py", 100 + at, f"step_{at}") for at in range(4)]
    elif part == "backward":
        inner = [(TORCH + "_tensor.py", 626, "backward")]
    else:
        called = [(TORCH + "nn/modules/module.py", 1790 + at, "_call_impl") for at in range(8)]
        inner = [("/home/me/model.py", 50 + line, "forward"), *called]
        own[0] = ("/home/me/train.py", 20, "main")
    padding = max(0, DEPTH - len(native) - len(inner) - len(own))
    return [*native, *inner, *own, *(("??", 0, f"_start_{at}") for at in range(padding))]


def write(path: Path, size_bytes: int) -> tuple[int, int]:
    """Write a file of about this size; return how many events and steps it has."""
    with path.open("wb", buffering=1 << 20) as file:
        writer = Writer(file)
        cache = Allocator(driver=Card(80 << 30), trace=writer)
        for _ in range(LAYERS):
            cache.alloc(24 * MIB)
        states: list[Block] = []
        steps = 0
        while writer.written < size_bytes:
            _step(cache, writer, LENGTHS[(5 * steps + steps // 7) % len(LENGTHS)], states)
            steps += 1
        writer.end(cache)
    return writer.count, steps


def _step(cache: Allocator, writer: Writer, tokens: int, states: list[Block]) -> None:
    """Play one step: forward, a tensor that is kept, backward, optimizer."""
    writer.part = "batch", 19
    batch = cache.alloc(tokens * 64)
    kept: list[list[Block]] = []
    for layer in range(LAYERS):
        writer.part = "forward", layer
        own = [cache.alloc(tokens * each * KIB) for each in (2, 6, 2, 8, 8, 2)]
        cache.free(own.pop(3))
        kept.append(own)
    writer.part = "leak", LEAK_LINE
    cache.alloc(LEAK_BYTES)
    writer.part = "backward", 24
    gradients = []
    while kept:
        scratch = [cache.alloc(tokens * each * KIB) for each in (8, 2)]
        gradients.append(cache.alloc(24 * MIB))
        for block in (*kept.pop(), *scratch):
            cache.free(block)
    writer.part = "optimizer", 26
    if not states:
        states += [cache.alloc(48 * MIB) for _ in range(LAYERS)]
    for gradient in gradients:
        cache.free(cache.alloc(24 * MIB))
        cache.free(gradient)
    cache.free(batch)


def main() -> int:
    """Write one file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--size", type=int, default=200, help="megabytes (10**6)")
    asked = parser.parse_args()
    events, steps = write(asked.file, asked.size * 10**6)
    print(f"{asked.file}: {events:,} events of {steps:,} steps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
