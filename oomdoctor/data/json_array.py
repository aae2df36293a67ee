"""Cut a JSON file into the texts of its rows, without holding the file.

[{"text": "..."}, {"text": "..."}]          an array of rows
{"data": [{...}, ...], "version": 1}        an object with such an array (held as a whole)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

READ_CHARACTERS = 1024**2
LONGEST_ROW = 64 * 1024**2
LARGEST_OBJECT = 256 * 1024**2
_BLANK = " \t\r\n"


def rows_of_array(path: str) -> Iterator[tuple[int, str]]:
    """Yield (line, JSON text) of each row; InputError with its place where it is no JSON."""
    try:
        with Path(path).open(encoding="utf-8-sig", errors="replace") as file:
            window = _Window(file, path)
            if window.sign() == "[":
                yield from window.rows()
                return
        yield from _of_object(path)
    except OSError as error:
        raise InputError(
            f"cannot read it: {error.strerror}", location=Location(path=path)
        ) from None


class _Window:
    """A part of the file that moves on: what was read and not yet used."""

    def __init__(self, file: TextIO, path: str) -> None:
        self._file = file
        self._path = path
        self._text = ""
        self._at = 0
        self._line = 1
        self._decode = json.JSONDecoder().raw_decode

    def sign(self) -> str:
        """Return the next character that is no blank, empty at the end."""
        while True:
            start = self._at
            while self._at < len(self._text) and self._text[self._at] in _BLANK:
                self._at += 1
            self._line += self._text.count("\n", start, self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def rows(self) -> Iterator[tuple[int, str]]:
        """Yield the rows of the array that begins here."""
        self._at += 1
        while (sign := self.sign()) not in ("]", ""):
            if sign == ",":
                self._at += 1
                continue
            yield self._line, self._row()
        if sign == "":
            raise self._fault("the array is not closed")

    def _row(self) -> str:
        while True:
            try:
                _, end = self._decode(self._text, self._at)
            except ValueError:
                end = -1
            # a number at the end of what was read may go on
            if end < 0 or end == len(self._text):
                if len(self._text) - self._at < LONGEST_ROW and self._more():
                    continue
                if end < 0:
                    raise self._fault("this row is no JSON")
            text = self._text[self._at : end]
            self._line += text.count("\n")
            self._at = end
            return text

    def _more(self) -> bool:
        """Read on, each time as much as is held: a long row must not take squared time."""
        held = self._text[self._at :]
        new = self._file.read(max(READ_CHARACTERS, len(held)))
        self._text, self._at = held + new, 0
        return bool(new)

    def _fault(self, message: str) -> InputError:
        return InputError(
            message,
            location=Location(path=self._path, line=self._line),
            hint="rows of which some may be broken can be given as JSON lines",
        )


def _of_object(path: str) -> Iterator[tuple[int, str]]:
    """Yield the rows of the longest array in an object, numbered: their lines are not known."""
    with Path(path).open(encoding="utf-8-sig", errors="replace") as file:
        text = file.read(LARGEST_OBJECT + 1)
    if len(text) > LARGEST_OBJECT:
        raise InputError(
            f"a JSON object of more than {format_size(LARGEST_OBJECT)} is not read",
            location=Location(path=path),
            hint="give its rows as an array or as JSON lines",
        )
    try:
        held = json.loads(text)
    except ValueError as error:
        raise InputError(f"no JSON: {error}", location=Location(path=path)) from None
    arrays = (
        [one for one in held.values() if isinstance(one, list)] if isinstance(held, dict) else []
    )
    rows = max(arrays, key=len, default=[])
    if not (rows and isinstance(rows[0], dict)) or "content" in rows[0] or "value" in rows[0]:
        rows = [held]
    for number, row in enumerate(rows, 1):
        yield number, json.dumps(row, ensure_ascii=False)
