"""One key with its value and the place that says so: what every syntax is read into."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from oomdoctor.model.core import Quote
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Scalar: TypeAlias = bool | int | float | str | None
Plain: TypeAlias = "Scalar | tuple[Plain, ...]"


class Setting(NamedTuple):
    """A leaf of a config: the path of keys to it, its value, and the quote of that value.

    Lists of plain values are one tuple; lists of mappings put the index into the path.
    """

    path: tuple[str, ...]
    value: Plain
    quote: Quote

    @property
    def key(self) -> str:
        """Return the path as one lower-case dotted name with underscores."""
        return normal(".".join(self.path))


class SyntaxFault(Exception):  # noqa: N818 - a fault of the text read, not of this program
    """A text is not of the syntax it was taken for; line and column are 1-based."""

    def __init__(self, message: str, *, line: int, column: int) -> None:
        """Store what is wrong and where."""
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


class TooMuch(SyntaxFault):
    """A text is larger than what is read of its kind; nothing is wrong with it."""


class Lines:
    """A stretch of an input's lines that knows how to quote them.

    `rows` are (physical line number, text without line end); `shift` is how many columns were cut
    from the left of every line (a script that was pasted indented).
    """

    def __init__(self, artifact: str, rows: Sequence[tuple[int, str]], *, shift: int = 0) -> None:
        """Keep the rows."""
        self.artifact = artifact
        self.rows = rows
        self.shift = shift

    @classmethod
    def of_text(cls, artifact: str, text: str, *, first: int = 1) -> Lines:
        """Split a text at its line feeds, and only there."""
        rows = text.split("\n")
        if rows and not rows[-1]:
            rows = rows[:-1]
        return cls(artifact, [(first + i, row.rstrip("\r")) for i, row in enumerate(rows)])

    def part(self, rows: Sequence[tuple[int, str]], *, shift: int | None = None) -> Lines:
        """Return some of the lines, after columns were cut from their left."""
        return Lines(self.artifact, rows, shift=self.shift if shift is None else shift)

    @property
    def text(self) -> str:
        """Return the rows as one text."""
        return "\n".join(row for _, row in self.rows) + "\n"

    def quote(self, row: int, start: int = 0, end: int | None = None) -> Quote:
        """Quote columns `start:end` (0-based) of row `row` (0-based), to its end by default."""
        number, text = self.rows[min(row, len(self.rows) - 1)]
        part = text[start:end].rstrip()
        if not part:
            start, part = len(text) - len(text.lstrip()), text.strip()
        first = start + self.shift + 1
        return Quote(
            artifact=self.artifact,
            line=number,
            text=part,
            column=first,
            end_column=first + len(part),
        )


class Settings:
    """All settings of one config in their order, found by dotted key."""

    def __init__(self, rows: Iterable[Setting]) -> None:
        """Index the rows; the last of equal keys is the one in force."""
        self.rows = tuple(row for row in rows if row.path)
        self._by_key = {row.key: row for row in self.rows}
        self.top = frozenset(normal(row.path[0]) for row in self.rows if row.path)

    def __iter__(self) -> Iterator[Setting]:
        """Go through the settings in force, in order."""
        return iter(self._by_key.values())

    @property
    def in_force(self) -> tuple[Setting, ...]:
        """Return the settings in force, null ones among them, in order."""
        return tuple(self._by_key.values())

    def get(self, key: str) -> Setting | None:
        """Return the setting of a dotted key, None where it is absent or null."""
        found = self._by_key.get(key)
        return None if found is None or found.value is None else found

    def value(self, key: str) -> Plain:
        """Return the value of a dotted key, None where it is absent or null."""
        found = self.get(key)
        return None if found is None else found.value

    def first(self, *keys: str) -> Setting | None:
        """Return the first of several keys that is set."""
        return next((found for key in keys if (found := self.get(key))), None)

    def names(self, *keys: str) -> int:
        """Count how many of `keys` stand at the top, null or not."""
        return sum(key in self.top for key in keys)


def normal(key: str) -> str:
    """Return a key as tables spell it: lower case, underscores."""
    return key.strip().lower().replace("-", "_")
