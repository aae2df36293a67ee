"""Takes names and secrets out of texts: first learns from all of them, then replaces in each.

What one place tells holds everywhere: a user found in a home path is also taken out of a process
table. The number of lines stays, and redacting what is redacted changes nothing.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from oomdoctor.redaction import machines, people, places, secrets
from oomdoctor.redaction.gates import GateLines
from oomdoctor.redaction.ordinary import is_account, is_public
from oomdoctor.redaction.pattern import Pattern, compiled
from oomdoctor.redaction.placeholders import Placeholders, is_placeholder
from oomdoctor.redaction.plain import plain, without_keys, without_wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Build = Callable[[Mapping[str, str]], re.Pattern[str]]

PATTERNS: tuple[Pattern, ...] = (
    *secrets.PATTERNS,
    *places.PATTERNS,
    *people.PATTERNS,
    *machines.PATTERNS,
)
WIDE = tuple(pattern for pattern in PATTERNS if not pattern.gates)
GATED = tuple(pattern for pattern in PATTERNS if pattern.gates)
_SHORT = 3
_LONG_SECRET = 12
_MASKED = 2


class Redactor:
    """Replaces by one set of placeholders; `learn` from all texts before the first `redact`."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self._placeholders = Placeholders()
        self._counting = False
        self._counts: dict[str, int] = {}
        self._examples: dict[str, dict[str, str]] = {}
        self._built: dict[Build, tuple[int, re.Pattern[str]]] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        """Return how many places were replaced, by kind."""
        return dict(sorted(self._counts.items()))

    @property
    def distinct(self) -> Mapping[str, int]:
        """Return how many different values were replaced, by kind."""
        return {kind: len(held) for kind, held in sorted(self._examples.items())}

    @property
    def examples(self) -> Mapping[str, Mapping[str, str]]:
        """Return placeholders with the masked value that they stand for, by kind."""
        return self._examples

    def learn(self, text: str) -> None:
        """Find the names and secrets of a text."""
        self._counting = False
        text = without_wrapped(without_keys(plain(text), self._value), self._value)
        self._by_patterns(text)

    def redact(self, text: str) -> str:
        """Return a text with placeholders."""
        self._counting = True
        text = without_keys(plain(text), self._value)
        text = self._by_secrets(without_wrapped(text, self._value))
        return self._by_names(self._by_secrets(self._by_patterns(text)))

    def _by_patterns(self, text: str) -> str:
        """Run each pattern on the lines that hold one of its gates; without gates, on all."""
        for pattern in WIDE:
            text = compiled(pattern.regex).sub(partial(self._placed, pattern=pattern), text)
        lines = text.split("\n")
        found = GateLines(text)
        for pattern in GATED:
            replace = partial(self._placed, pattern=pattern)
            search = compiled(pattern.regex)
            for at in found.of(pattern.gates):
                lines[at] = search.sub(replace, lines[at])
        return "\n".join(lines)

    def _placed(self, found: re.Match[str], pattern: Pattern) -> str:
        value = found["it"]
        if not _wanted(pattern.kind, value) or is_placeholder(value):
            return found[0]
        if pattern.accept is not None and not pattern.accept(found):
            return found[0]
        shown = self._value(pattern.kind, value, spreads=pattern.spreads)
        start, end = found.start("it") - found.start(), found.end("it") - found.start()
        before = found[0][:start]
        if value.replace(".", "").isdecimal() and re.search(r"\"[ \t]{0,20}:[ \t]{0,20}$", before):
            shown = f'"{shown}"'  # a number in JSON becomes a text
        return before + shown + found[0][end:]

    def _value(self, kind: str, value: str, *, spreads: bool = True) -> str:
        if kind in ("KEY", "SECRET") and is_placeholder(value):
            return value
        shown = self._placeholders.of(kind, value, spreads=spreads)
        self._count(shown, value)
        return shown

    def _count(self, shown: str, value: str) -> None:
        if not self._counting:
            return
        kind = re.split(r"[\d-]", shown, maxsplit=1)[0] or "GPU"
        kind = "GPU" if kind == "MIG" else kind
        self._counts[kind] = self._counts.get(kind, 0) + 1
        self._examples.setdefault(kind, {}).setdefault(shown, _masked(value))

    def _by_secrets(self, text: str) -> str:
        return self._by_spelling(text, self._placeholders.secrets, _secrets_pattern)

    def _by_names(self, text: str) -> str:
        return self._by_spelling(text, self._placeholders.known, _names_pattern)

    def _by_spelling(self, text: str, held: Mapping[str, str], build: Build) -> str:
        """Replace what is known, by an expression that is built anew when more is known."""
        if not held:
            return text
        count, pattern = self._built.get(build, (0, None))
        if pattern is None or count != len(held):
            pattern = build(held)
            self._built[build] = (len(held), pattern)
        return pattern.sub(lambda found: self._told(found[0], held), text)

    def _told(self, value: str, held: Mapping[str, str]) -> str:
        shown = held[value]
        self._count(shown, value)
        return shown


def _wanted(kind: str, value: str) -> bool:
    """Say whether a value names somebody: no account of every machine, no public site."""
    if kind == "USER":
        return not is_account(value) and not value.isdecimal()
    if kind == "HOST":
        return not is_public(value)
    return True


def _names_pattern(names: Mapping[str, str]) -> re.Pattern[str]:
    """Match the names as words of their own; short ones only where nothing is joined to them."""
    ordered = sorted(names, key=len, reverse=True)
    long = "|".join(re.escape(one) for one in ordered if len(one) > _SHORT)
    short = "|".join(re.escape(one) for one in ordered if len(one) <= _SHORT)
    parts = []
    if long:
        parts.append(rf"(?:(?<![^\W_])|(?<=\\[nrt]))(?:{long})(?![^\W_])")
    if short:
        parts.append(rf"(?:(?<![\w.-])|(?<=\\[nrt]))(?:{short})(?![\w-])")
    return re.compile("|".join(parts))


def _secrets_pattern(secrets: Mapping[str, str]) -> re.Pattern[str]:
    """Match secrets wherever they stand; a short one could be the beginning of a word."""
    ordered = sorted(secrets, key=len, reverse=True)
    long = [re.escape(one) for one in ordered if len(one) >= _LONG_SECRET]
    short = [re.escape(one) for one in ordered if len(one) < _LONG_SECRET]
    words = [rf"(?:(?<![^\W_])|(?<=\\[nrt]))(?:{'|'.join(short)})(?![^\W_])"] if short else []
    return re.compile("|".join([*long, *words]))


def _masked(value: str) -> str:
    """Return a value of which only the beginning can be read."""
    kept = min(_MASKED, len(value) // 3)
    return value[:kept] + "*" * min(8, max(1, len(value) - kept))
