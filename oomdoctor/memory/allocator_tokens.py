"""The words of an allocator setting: names, values and the signs `,` `:` `[` `]`.

As torch does, it takes whatever stands where a sign belongs for that sign, and reads a number as
far as it is one: `64abc` is 64.
"""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.errors import InputError

SIGNS = ",:[]"
TWO_64 = 1 << 64
ENDS = (
    "i < config_.size() INTERNAL ASSERT FAILED: Index out of bounds in ConfigTokenizer",
    "the setting ends where a value belongs",
)


@cache
def _number() -> re.Pattern[str]:
    return re.compile(r"[+-]?\d+")


@cache
def _real() -> re.Pattern[str]:
    return re.compile(
        r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|inf|nan)", re.IGNORECASE
    )


class Tokens:
    """The words of a setting, read one after the other."""

    def __init__(self, text: str) -> None:
        """Part a text into its words; spaces are dropped."""
        self.at = 0
        self._words: list[str] = []
        word = ""
        for sign in text:
            if sign in SIGNS:
                if word:
                    self._words.append(word)
                self._words.append(sign)
                word = ""
            elif sign != " ":
                word += sign
        if word:
            self._words.append(word)

    def __len__(self) -> int:
        """Return how many words there are."""
        return len(self._words)

    def peek(self) -> str:
        """Return the next word without going on."""
        if self.at >= len(self._words):
            message, hint = ENDS
            raise InputError(message, hint=hint)
        return self._words[self.at]

    def next(self) -> str:
        """Return the next word and go on."""
        word = self.peek()
        self.at += 1
        return word

    def skip(self) -> None:
        """Go past a sign."""
        self.at += 1

    def value(self) -> str:
        """Go past the colon and return the word behind it."""
        self.skip()
        return self.next()

    def truth(self) -> bool:
        """Return a value that is exactly True or False."""
        word = self.value()
        if word not in ("True", "False"):
            raise InputError(
                f"Expected 'True' or 'False' at index {self.at - 1} in ConfigTokenizer but got"
                f" '{word}'"
            )
        return word == "True"

    def size(self) -> int:
        """Return a value that is a whole number."""
        return self.read_number(self.value())

    def number(self) -> int:
        """Return the next word as a whole number."""
        return self.read_number(self.next())

    def read_number(self, word: str) -> int:
        """Return the whole number that a word begins with; below zero it wraps, as size_t does."""
        found = _number().match(word)
        if found is None or len(word) > 40 or abs(int(found[0])) >= TWO_64:
            raise InputError("stoull", hint=f"{word!r} is no whole number that torch can hold")
        return int(found[0]) % TWO_64

    def share(self) -> float:
        """Return a value that is a number."""
        word = self.value()
        found = _real().match(word)
        if found is None:
            raise InputError("stod", hint=f"{word!r} is no number")
        return float(found[0])
