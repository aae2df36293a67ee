"""Lines of Python tracebacks in the forms that people paste, one line at a time.

```
  File "/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 125, in forward
    return F.linear(input, self.weight, self.bias)                    plain, code one level deeper
Cell In[3], line 5                                                     IPython 8
File ~/x.py:12, in f(a)
---> 12     return g(a)
/usr/lib/python3/dist-packages/torch/nn/functional.py in linear(input) IPython 7, Colab
│ /home/u/train.py:12 in main                                        │ rich
│ ❱ 12     trainer.train()                                           │
tests/test_x.py:12: in test_fit                                        pytest
```
"""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.record import NamedTuple


class Frame(NamedTuple):
    """A frame of a stack; `at` is the document line that names it, `code_at` that of its code."""

    path: str
    line: int | None
    function: str
    code: str | None
    at: int
    code_at: int | None = None

    @property
    def shown(self) -> str:
        """Return `path:line function | code`, without what is unknown."""
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        head = f"{place} {self.function}".strip()
        return f"{head} | {self.code}".strip() if self.code else head


class FrameHead(NamedTuple):
    """What a line that names a frame says, how deep it is indented, and in which style."""

    path: str
    line: int | None
    function: str
    indent: int
    style: str


def frame_head(text: str) -> FrameHead | None:
    """Parse a line that names a frame, None where it names none."""
    if "File " in text:
        found = _plain().match(text)
        if found is not None:
            number = int(found["line"]) if found["line"] else None
            function = (found["function"] or "").strip()
            return FrameHead(found["path"], number, function, len(found["indent"]), "plain")
        found = _ipython().match(text)
        if found is not None:
            number = int(found["line"])
            return FrameHead(found["path"], number, _bare(found["function"]), 0, "notebook")
        return None
    if " In" in text and "[" in text:
        found = _cell().match(text)
        if found is not None:
            at = int(found["line"]) if found["line"] else None
            return FrameHead(found["path"], at, _bare(found["function"]), 0, "notebook")
    return _other_head(text) if " in " in text else None


def _other_head(text: str) -> FrameHead | None:
    found = _beheaded().match(text) if '", line ' in text else None
    if found is not None:
        return FrameHead(found["path"], int(found["line"]), found["function"], 0, "plain")
    return _old_notebook_or_rich(text)


def _old_notebook_or_rich(text: str) -> FrameHead | None:
    if ".py" not in text and ".ipynb" not in text and "ipykernel" not in text and "<" not in text:
        return None
    found = _rich().match(text)
    if found is not None:
        style = "pytest" if found["colon"] else "rich"
        return FrameHead(found["path"], int(found["line"]), _bare(found["function"]), 0, style)
    found = _old_notebook().match(text)
    if found is not None:
        return FrameHead(found["path"], None, _bare(found["function"]), 0, "notebook")
    return None


def arrow_code(text: str) -> tuple[int, str] | None:
    """Parse the line that an arrow marks as running: its number and its code."""
    found = _arrow().match(text)
    return (int(found["line"]), (found["code"] or "").strip("│ \t")) if found is not None else None


def unboxed(text: str) -> str:
    """Take off the frame that rich draws around a traceback, or the bar of an exception group."""
    found = _box().match(text)
    return found["inside"].rstrip() if found is not None else text


def is_header(text: str) -> bool:
    """Say whether a traceback starts on this line."""
    return "Traceback (most recent call last)" in text or "(most recent call first)" in text


def is_ornament(text: str) -> bool:
    """Say whether a line within a traceback carries nothing: carets, repeats, frames drawn."""
    stripped = text.strip()
    if not stripped.strip(_DRAWN):
        return True
    if stripped.startswith(("│", "└", "[Previous line repeated")):
        return True
    return hides_frames(text)


def hides_frames(text: str) -> bool:
    """Say whether a line within a traceback stands for frames that are not shown."""
    stripped = text.strip()
    return (
        stripped.startswith(("[... skipping", "... ")) or _hidden().fullmatch(stripped) is not None
    )


def exception_of(text: str) -> tuple[str | None, str] | None:
    """Parse the last line of a traceback: (class or None, message); None where it is no such."""
    stripped = text.strip()
    found = _exception().match(stripped[:4096])
    if found is not None:
        name = found["name"]
        last = name.rpartition(".")[2].partition("(")[0].lstrip("_")
        likely = last.endswith(_ENDINGS) or last in _ODD_NAMES
        if likely or (found["message"] is not None and last[:1].isupper() and "." in name):
            return name, found["message"] or ""
    if "out of memory" in stripped[:80].lower() and not stripped.startswith(
        ("#", "raise", "print")
    ):
        return None, stripped
    return None


_DRAWN = "~^ │└├─╭╮╰╯┃|+-="
_ENDINGS = ("Error", "Exception", "Interrupt", "Exit", "Failure", "Exhausted", "OutOfResources")
_ODD_NAMES = frozenset(
    {"StopIteration", "TimeoutExpired", "BrokenProcessPool", "KeyboardInterrupt"}
)


def _bare(function: str | None) -> str:
    """Return a function's name without its arguments and without the class before it."""
    name = (function or "").strip().partition("(")[0].strip()
    return name if name.startswith("<") else name.rpartition(".")[2]


@cache
def _plain() -> re.Pattern[str]:
    return re.compile(
        r"(?P<indent>\s*)(?:> )?File [\"“](?P<path>[^\"”]+)[\"”](?=, line \d|,? in \S)"
        r"(?:, line (?P<line>\d{1,9}))?(?:,? in (?P<function>.+?))?\s*$"
    )


@cache
def _beheaded() -> re.Pattern[str]:
    """Match the first line of a paste that starts in the middle: `loss.py", line 3, in forward`."""
    return re.compile(
        r"(?P<path>[\w./\\\-]+\.py)\", line (?P<line>\d{1,9}), in (?P<function>[\w<>]+)\s*$"
    )


@cache
def _ipython() -> re.Pattern[str]:
    return re.compile(
        r"\s{0,4}File (?P<path>[^\s:][^:]*(?::\\[^:]*)?):(?P<line>\d+)"
        r"(?:, in (?P<function>.*))?\s*$"
    )


@cache
def _cell() -> re.Pattern[str]:
    return re.compile(
        r"\s{0,4}(?P<path>(?:Cell|Input) In ?\[\d+\])(?:, (?:line (?P<line>\d+)|in ))?"
        r"(?:, in )?(?P<function>.*)$"
    )


@cache
def _old_notebook() -> re.Pattern[str]:
    return re.compile(
        r"\s{0,4}\[?(?P<path>(?:[/~]|[A-Za-z]:\\)[^\s\]()]*\.(?:py|pyx|ipynb)|<ipython-input[^>]*>"
        r"|[\w.\-]+(?:[/\\][\w.\-]+){0,30}\.pyx?(?=\]?(?:\(https?://\S+\))? in [\w<>.]+\()"
        r"|[/~][^\s\]()]*ipykernel[^\s\]()]*)\]?(?:\(https?://\S+\))? in (?P<function>.*)$"
    )


@cache
def _rich() -> re.Pattern[str]:
    return re.compile(
        r"(?P<path>(?:[A-Za-z]:\\)?[^\s:][^:]*\.(?:py|pyx)|<[\w\- ]+>):(?P<line>\d+)"
        r"(?P<colon>:?) in "
        r"(?P<function>[\w.<>]+)\s*$"
    )


@cache
def _arrow() -> re.Pattern[str]:
    return re.compile(r"\s*(?:-{1,6}>|❱)\s*(?P<line>\d{1,7})(?:\s(?P<code>.*)|)$")


@cache
def _box() -> re.Pattern[str]:
    return re.compile(r"\s*[│┃|] ?(?P<inside>.*?)(?:\s*[│┃|])?\s*$")


@cache
def _hidden() -> re.Pattern[str]:
    return re.compile(r"\.{3}|\d+ frames(?: hidden)?|\[?\.{3}.{0,40}frames?.{0,20}\]?")


@cache
def _exception() -> re.Pattern[str]:
    return re.compile(
        r"(?:E\s{1,8})?(?P<name>(?:[A-Za-z_]\w*\.){0,12}[A-Za-z_]\w*(?:\([\w.]+\))?)"
        r"(?::(?:\s(?P<message>.*))?)?$"
    )
