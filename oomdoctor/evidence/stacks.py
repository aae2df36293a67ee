"""Stacks out of a document: frames put together per writer, so that ranks do not mix.

```
[rank1]: Traceback (most recent call last):
[rank0]:   File "train.py", line 9, in <module>
[rank1]:   File "train.py", line 9, in <module>
[rank1]:     trainer.train()
[rank1]: torch.OutOfMemoryError: CUDA out of memory. ...
```
Tracebacks may lack their header, their code lines or their end, and several may be chained.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.evidence.frames import (
    Frame,
    FrameHead,
    arrow_code,
    exception_of,
    frame_head,
    hides_frames,
    is_header,
    is_ornament,
    unboxed,
)
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from oomdoctor.model.core import Document, LogLine

_FOREIGN_LINES = 40
_LINE_CHARS = 2000
_CODE_LINES = 12
_CODE_CHARS = 400
MOST_FRAMES = 600
"""An endless recursion prints a frame per call: its first and last ones tell all there is."""
_OURS = re.compile(r"\boomdoctor/(inject|virtual/inside)/[^/]+\.py$")
_SPARE_FRAMES = 1000
_BOX = ("│", "┃", "|")
_STARTS = ("❱", "File ", "Traceback", " in ", " In", "(most recent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Frames from the outermost to the failing one, and the exception that ended them.

    `first` and `last` are the document lines that it spans, `header` and `ending` those of its
    first line and of its exception where they are there; `hidden` says that frames were left out.
    """

    frames: tuple[Frame, ...]
    rank: int | None
    stream: str
    first: int
    last: int
    header: int | None = None
    ending: int | None = None
    exception: str | None = None
    message: str = ""
    notebook: bool = False
    hidden: bool = False

    @property
    def complete(self) -> bool:
        """Say whether the traceback starts at its first line and ends at its exception."""
        return self.header is not None and self.ending is not None


def stacks(document: Document) -> tuple[Stack, ...]:
    """Return all stacks of `document` in the order of their first lines."""
    builders: dict[tuple[str, int | None], _Builder] = {}
    found: list[Stack] = []
    starts = set(haystack_of(document).lines_with(map(str.lower, _STARTS)))
    for index, line in enumerate(document.lines):
        if index not in starts and not builders:
            continue
        key = (line.stream, line.rank)
        builder = builders.get(key)
        if builder is None:
            if index not in starts or not any(word in line.text for word in _STARTS):
                continue
            builder = builders[key] = _Builder(line)
        found.extend(builder.feed(index, line.text))
        if builder.idle:
            del builders[key]
    for builder in builders.values():
        found.extend(builder.close())
    return tuple(sorted(found, key=lambda stack: (stack.first, stack.last)))


class _Builder:
    """Puts the lines of one writer together to stacks."""

    def __init__(self, line: LogLine) -> None:
        self._rank = line.rank
        self._stream = line.stream
        self._start(None)

    def _start(self, header: int | None, *, reverse: bool = False) -> None:
        self._frames: list[Frame] = []
        self._header = header
        self._first = self._last = header
        self._head: FrameHead | None = None
        self._code: list[str] = []
        self._code_index: int | None = None
        self._head_index = 0
        self._foreign = 0
        self._reverse = reverse
        self._notebook = False
        self._wrap = ""
        self._hidden = False

    @property
    def idle(self) -> bool:
        """Say whether no traceback is under way."""
        return self._header is None and self._head is None and not self._frames

    def feed(self, index: int, text: str) -> Iterator[Stack]:
        """Take the next line of the writer; yield the stack that it ends, if any."""
        text = text[:_LINE_CHARS]
        if is_header(text):
            yield from self.close()
            self._start(index, reverse="most recent call first" in text)
            return
        head = frame_head(text)
        if head is None and text.lstrip().startswith(_BOX):
            text = unboxed(text)
            head = frame_head(text) or self._wrapped_head(text)
        if head is not None:
            self._open(index, head)
            return
        if self.idle:
            self._open_headless(index, text)
            return
        if self._foreign > _FOREIGN_LINES:
            yield from self.close()
            return
        yield from self._within(index, text)

    def _open_headless(self, index: int, text: str) -> None:
        """Take the running line of a box whose upper part was cut off for a frame of its own."""
        arrow = arrow_code(text) if "❱" in text else None
        if arrow is not None and arrow[1]:
            self._open(index, FrameHead("", None, "", 0, "rich"))
            self._code, self._code_index = [arrow[1]], index

    def _wrapped_head(self, text: str) -> FrameHead | None:
        """Join a frame that rich broke over two lines of its box."""
        before, self._wrap = self._wrap, ""
        if before:
            return frame_head(before + text) or frame_head(f"{before} {text}")
        if text.startswith(("/", "~")) or text[1:3] == ":\\":
            self._wrap = text
        return None

    def _open(self, index: int, head: FrameHead) -> None:
        self._seal()
        self._head, self._head_index = head, index
        self._notebook = self._notebook or head.style == "notebook" or _in_notebook(head.path)
        self._first = index if self._first is None else self._first
        self._last = index
        self._foreign = 0

    def _within(self, index: int, text: str) -> Iterator[Stack]:
        stripped = text.strip()
        self._hidden = self._hidden or hides_frames(text)
        if not stripped or is_ornament(text):
            return
        if self._head is not None and self._head.style != "plain":
            arrow = arrow_code(text)
            if arrow is not None:
                self._head = self._head._replace(line=arrow[0])
                self._code, self._code_index, self._last = [arrow[1]], index, index
                return
            if stripped[:1].isdecimal():
                return
        if self._is_code(text):
            self._add_code(index, stripped)
            return
        ended = exception_of(text)
        if ended is not None and (self._head is not None or self._header is not None):
            yield from self.close(index, *ended)
            return
        self._foreign += 1

    def _is_code(self, text: str) -> bool:
        """Say whether a line is source code of the frame above it."""
        head = self._head
        if head is None or self._foreign or len(self._code) >= _CODE_LINES:
            return False
        if head.style != "plain":
            return False
        indent = len(text) - len(text.lstrip())
        if indent > head.indent:
            return True
        if head.indent == 0 and not self._code:
            return exception_of(text) is None
        return bool(self._code) and head.indent == 0 and _unclosed(self._code)

    def _add_code(self, index: int, stripped: str) -> None:
        if self._code and self._code[-1] == stripped:
            return
        if self._code_index is None:
            self._code_index = index
        self._code.append(stripped)
        self._last = index

    def _seal(self) -> None:
        """Turn the frame that is under way into a finished one."""
        head = self._head
        if head is None:
            return
        code = " ".join(self._code)[:_CODE_CHARS] or None
        frame = Frame(head.path, head.line, head.function, code, self._head_index, self._code_index)
        if self._frames and _repeats(self._frames[-1], frame):
            self._frames.pop()
        self._frames.append(frame)
        self._drop_middle(spare=_SPARE_FRAMES)
        self._head, self._code, self._code_index = None, [], None

    def _drop_middle(self, *, spare: int) -> None:
        """Keep the outermost and the innermost of very many frames."""
        if len(self._frames) > MOST_FRAMES + spare:
            del self._frames[MOST_FRAMES // 2 : -(MOST_FRAMES // 2)]
            self._hidden = True

    def close(
        self, ending: int | None = None, exception: str | None = None, message: str = ""
    ) -> Iterator[Stack]:
        """Yield the stack under way and be idle again."""
        self._seal()
        self._drop_middle(spare=0)
        frames = without_ours(reversed(self._frames) if self._reverse else self._frames)
        if frames or (self._header is not None and ending is not None):
            first = self._first if self._first is not None else 0
            last = ending if ending is not None else self._last
            yield Stack(
                frames=frames,
                rank=self._rank,
                stream=self._stream,
                first=first,
                last=first if last is None else last,
                header=self._header,
                ending=ending,
                exception=exception,
                message=message,
                notebook=self._notebook,
                hidden=self._hidden,
            )
        self._start(None)


def without_ours(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    """Leave out who counts memory or follows values for us: who asked for it is the frame above."""
    found = tuple(frames)
    while len(found) > 1 and _OURS.search(found[-1].path.replace("\\", "/")):
        found = found[:-1]
    return found


def _repeats(one: Frame, other: Frame) -> bool:
    """Say whether two ranks without prefixes printed the same frame right after each other."""
    same = (one.path, one.line, one.function) == (other.path, other.line, other.function)
    return same and one.code is None and other.at == one.at + 1


def _in_notebook(path: str) -> bool:
    return "ipykernel" in path or path.startswith("<ipython-input")


def _unclosed(code: list[str]) -> bool:
    text = " ".join(code)
    return sum(map(text.count, "([{")) > sum(map(text.count, ")]}"))
