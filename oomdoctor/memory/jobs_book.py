"""Reading a book of facts for a job: typed values, and a sentence for everything assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Value

_T = TypeVar("_T")


class Said:
    """The facts of one job; remembers what had to be assumed and what nobody said.

    `assumptions` are sentences in the order in which they were made, each once. `missing` names
    what cannot be guessed, with the way to state it.
    """

    def __init__(self, book: FactBook, *, supposes: bool = False) -> None:
        """Read from `book`.

        `supposes` lets a network near to that of the name and a single card stand in, each as an
        assumption, where an answer is asked for and nothing follows from it unseen.
        """
        self.book = book
        self.supposes = supposes
        self._assumptions: dict[str, None] = {}
        self._missing: dict[str, None] = {}

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Return what was assumed."""
        return tuple(self._assumptions)

    @property
    def missing(self) -> tuple[str, ...]:
        """Return what cannot be guessed."""
        return tuple(self._missing)

    def assume(self, sentence: str) -> None:
        """Note a choice that nobody stated."""
        self._assumptions.setdefault(sentence)

    def lack(self, sentence: str) -> None:
        """Note what cannot be guessed."""
        self._missing.setdefault(sentence)

    def _value(self, key: str) -> Value | None:
        fact = self.book.get(key)
        if fact is None:
            return None
        if fact.origin is Origin.ASSUMED and not key.startswith(("env.", "model.")):
            source = f" ({fact.source})" if fact.source else ""
            self.assume(f"{key} = {_word(fact.value)}{source}")
        return fact.value

    def text(self, key: str) -> str | None:
        """Return a text, None where nobody said it."""
        value = self._value(key)
        return value if isinstance(value, str) else None

    def flag(self, key: str) -> bool | None:
        """Return a truth value, None where nobody said it."""
        value = self._value(key)
        return value if isinstance(value, bool) else None

    def count(self, key: str) -> int | None:
        """Return a whole number, None where nobody said it."""
        value = self._value(key)
        return None if isinstance(value, (bool, str)) or value is None else int(value)

    def number(self, key: str) -> float | None:
        """Return a number, None where nobody said it."""
        value = self._value(key)
        return None if isinstance(value, (bool, str)) or value is None else float(value)

    def stated(self, key: str) -> bool:
        """Say whether somebody stated a fact, or it follows from what was stated."""
        fact = self.book.get(key)
        return fact is not None and fact.origin is not Origin.ASSUMED

    def glance(self, key: str) -> str:
        """Return a whole text that is only searched, empty where absent."""
        value = self.book.value(key)
        return value if isinstance(value, str) else ""

    def otherwise(self, read: Callable[[str], _T | None], key: str, value: _T, why: str) -> _T:
        """Return what was said, or `value` with the sentence `why` among the assumptions."""
        found = read(key)
        if found is None:
            self.assume(why)
            return value
        return found


def _word(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)
