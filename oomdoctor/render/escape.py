r"""Neutralise text that came from an input before it is shown.

A log may hold anything: `\x1b[2J` clears a terminal, U+202E turns a line around, `[red]` is markup
to some libraries, `<img>` and `@name` act in an issue. What cannot be printed is shown as an
escape, never dropped, so that a quote still tells what the file holds.
"""

from __future__ import annotations

import unicodedata

_LATIN = 0x100
_PLANE = 0x10000
_TAB = "    "
TAIL = 3  # a third of a cut text is its tail: most messages say what matters first
_SPECIAL = frozenset("\\`*_{}[]|~$")
_BULLETS = ("-", "+", "=")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
# Issue trackers link names, numbers and addresses after they have resolved entities: only a comment
# in between keeps `@all` from being one.
_BREAK = "<!-- -->"
_LINKS = (
    ("@", f"@{_BREAK}"),
    ("#", f"#{_BREAK}"),
    ("://", f":{_BREAK}//"),
    ("www.", f"www{_BREAK}."),
)


def visible(text: str, *, ascii_only: bool = False) -> str:
    r"""Return `text` on one line with every unprintable character as `\x1b` or `\u202e`.

    With `ascii_only` all characters beyond ASCII are written that way too.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char, ascii_only=ascii_only) for char in text)


def _shown(char: str, *, ascii_only: bool) -> str:
    if char == "\t":
        return _TAB
    if char.isprintable() and (char.isascii() or not ascii_only):
        return char
    number = ord(char)
    if number < _LATIN:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < _PLANE else f"\\U{number:08x}"


def cells(text: str) -> int:
    """Return how many terminal columns `text` takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_cell(char) for char in text)


def _cell(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def shorten(text: str, width: int, *, mark: str = "...") -> str:
    """Cut `text` in the middle until it fits `width` columns; head and tail tell the most."""
    if cells(text) <= width:
        return text
    room = max(width - len(mark), 2)
    end = max(room // TAIL, 1)
    head = _taken(text, room - end)
    tail = _taken(text[::-1], end)[::-1]
    return f"{head}{mark}{tail}"


def _taken(text: str, room: int) -> str:
    used = 0
    for at, char in enumerate(text):
        used += _cell(char)
        if used > room:
            return text[:at]
    return text


def html(text: str) -> str:
    """Return `text` for the inside of an HTML element in an issue."""
    shown = visible(text)
    for char, entity in _ENTITIES.items():
        shown = shown.replace(char, entity)
    return _unlinked(shown)


def markdown(text: str) -> str:
    """Return `text` so that Markdown shows it word for word: no markup, mention, link or HTML."""
    shown = "".join(f"\\{char}" if char in _SPECIAL else char for char in visible(text))
    for char in "&<>":
        shown = shown.replace(char, _ENTITIES[char])
    return _unlinked(f"\\{shown}" if shown.startswith(_BULLETS) else shown)


def _unlinked(text: str) -> str:
    for sign, broken in _LINKS:
        text = text.replace(sign, broken)
    return text


def code_span(text: str) -> str:
    """Return `text` as inline Markdown code whose fence is longer than any run inside it."""
    shown = visible(text)
    fence = "`" * (_longest_run(shown) + 1)
    padded = f" {shown} " if shown.startswith("`") or shown.endswith("`") else shown
    return f"{fence}{padded}{fence}" if shown else ""


def code_block(text: str, *, language: str = "") -> str:
    """Return `text` as a fenced Markdown block that no line of it can close."""
    lines = [visible(line) for line in text.split("\n")]
    fence = "`" * max(3, *(_longest_run(line) + 1 for line in lines))
    return "\n".join([f"{fence}{language}", *lines, fence])


def _longest_run(text: str) -> int:
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return longest
