"""The stacks of a snapshot: who asked for a block, told by Python frames, the innermost first.

    [{"name": "forward", "filename": "/home/me/model.py", "line": 104}, …]

A snapshot names the same few stacks again and again, so each is read once and known by its number.
C++ frames are not kept; only whether autograd's engine is among them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

OBJECT_BYTES = 8  # an event or a block has at least a few keys and values
NAMED_BYTES = 2  # a frame that was met before is named by its number
ANYWAY_BYTES = 100_000
ENGINE = ("autograd::Engine", "autograd::python::PythonEngine")
LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3", "<frozen", "<string>")
OURS = ("/oomdoctor/inject/", "/oomdoctor/virtual/")
LIBRARY_STARTS = ("torch/", "<__array_function__", "<eval_with_key>")
CALLS = ("_call_impl", "_wrapped_call_impl")


class Frame(NamedTuple):
    """One line of Python code that was being run."""

    file: str
    line: int
    name: str

    @property
    def library(self) -> bool:
        """Say whether it is code that was installed or recorded the run, not the user's own."""
        file = self.file.replace("\\", "/")
        named = self.recorder or any(one in file for one in LIBRARIES)
        return named or file.startswith(LIBRARY_STARTS)

    @property
    def recorder(self) -> bool:
        """Say whether it is code of ours that was in the run: it asks for nothing of its own."""
        file = self.file.replace("\\", "/")
        return any(one in file for one in OURS)

    @property
    def forward(self) -> bool:
        """Say whether it is the call of a module."""
        file = self.file.replace("\\", "/")
        return self.name in CALLS and file.endswith("torch/nn/modules/module.py")

    @property
    def place(self) -> str:
        """Return `file:line in name`."""
        return f"{self.file}:{self.line} in {self.name}"


class Stack(NamedTuple):
    """The Python frames of a request, and whether autograd's engine ran them."""

    frames: tuple[Frame, ...]
    backward: bool = False

    @property
    def own(self) -> Frame | None:
        """Return the innermost frame of the user's own code."""
        return next((one for one in self.frames if not one.library), None)

    @property
    def first(self) -> Frame | None:
        """Return the user's own frame, else the innermost of a library, if there is any."""
        return self.own or next((one for one in self.frames if not one.recorder), None)


NO_STACK = Stack(())


class Budget:
    """How many objects a file of some size can hold; one that names them again has more."""

    def __init__(self, data_bytes: int | None) -> None:
        """Allow what fits into so many bytes."""
        self.left = None if data_bytes is None else data_bytes + ANYWAY_BYTES

    def spend(self, count: int, each: int = OBJECT_BYTES) -> None:
        """Count objects; InputError where there are more than the file can hold."""
        if self.left is None:
            return
        self.left -= count * each
        if self.left < 0:
            raise InputError(
                "the file is no snapshot: it names the same objects again and again, so that"
                " there would be more of them than it has room for"
            )


class StackTable:
    """Numbers the stacks as they are met; number 0 is the one without frames."""

    def __init__(self, budget: Budget) -> None:
        """Start with the empty stack."""
        self.stacks: list[Stack] = [NO_STACK]
        self._budget = budget
        self._numbers: dict[Stack, int] = {NO_STACK: 0}
        self._by_frames: dict[tuple[int, ...], int] = {}
        self._known: dict[int, tuple[object, Frame | None, bool]] = {}

    def number(self, frames: object) -> int:
        """Return the number of a list of frames.

        Frames are told apart by where they lie in memory, so the table keeps them.
        """
        if not frames:
            return 0
        if not isinstance(frames, list):
            raise InputError(f"`frames` is no list but {type(frames).__name__}")
        self._budget.spend(len(frames), NAMED_BYTES)
        places = tuple(map(id, frames))
        number = self._by_frames.get(places)
        if number is None:
            number = self._by_frames[places] = self.add(self._read(frames))
        return number

    def add(self, stack: Stack) -> int:
        """Return the number of a stack."""
        number = self._numbers.setdefault(stack, len(self.stacks))
        if number == len(self.stacks):
            self.stacks.append(stack)
        return number

    def _read(self, frames: Iterable[object]) -> Stack:
        kept, backward = [], False
        for plain in frames:
            known = self._known.get(id(plain))
            if known is None:
                known = self._known[id(plain)] = (plain, *_frame(plain))
            if known[1] is not None:
                kept.append(known[1])
            backward = backward or known[2]
        return Stack(tuple(kept), backward)


def _frame(plain: object) -> tuple[Frame | None, bool]:
    """Return a frame of Python, None for one of C++, and whether it is autograd's engine."""
    if not isinstance(plain, dict):
        raise InputError("a stack has a frame that is no dictionary")
    name, file, line = plain.get("name"), plain.get("filename"), plain.get("line", 0)
    if not isinstance(name, str) or not isinstance(file, str) or type(line) is not int:
        raise InputError("a stack has a frame without name, filename or line")
    return frame_of(name, file, line)


def frame_of(name: str, file: str, line: int) -> tuple[Frame | None, bool]:
    """Return a frame of Python, None for one of C++, and whether it is autograd's engine."""
    if line and (file.endswith(".py") or file.startswith("<")):
        return Frame(file, line, name), False
    return None, any(one in name for one in ENGINE)
