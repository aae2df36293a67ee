"""A question to a person: its words, what may be answered, which facts each answer states."""

from __future__ import annotations

from oomdoctor.record import NamedTuple, dataclass

TRAINS = ("train.inference!=true", "run.inference_only!=true")
"""Conditions of a question that makes sense only where something is trained."""


class Choice(NamedTuple):
    """An answer: its words, the facts it states, and how often people give it (a share).

    `sets` are KEY=VALUE strings, as for --fact. In a question for a paste or free words they are
    examples of what may turn up, and nobody is held to them.
    """

    text: str
    sets: tuple[str, ...]
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question: how it is put, how it is answered, what it costs in seconds.

    `kind` is choice (numbered answers), number (a size or a count), words (a line) or paste
    (several lines). It is not put where one of `settled` is known, or where a known fact
    contradicts `only_if` (KEY=VALUE, KEY!=VALUE). `answered` is the share of people who can answer
    at all; `fact` is what a number states; `hint` is a command or an example.
    """

    id: str
    text: str
    kind: str
    choices: tuple[Choice, ...]
    seconds: float
    settled: tuple[str, ...] = ()
    only_if: tuple[str, ...] = ()
    answered: float = 0.85
    fact: str | None = None
    hint: str | None = None

    @property
    def facts(self) -> tuple[str, ...]:
        """Return the keys that its answers state, in order."""
        keys = [item.partition("=")[0] for one in self.choices for item in one.sets]
        return tuple(dict.fromkeys([*([self.fact] if self.fact else []), *keys]))


def yes_no(*, yes: tuple[str, ...], no: tuple[str, ...], share: float) -> tuple[Choice, Choice]:
    """Return the two answers to a plain question; `share` is how often it is yes."""
    return (Choice("yes", yes, share), Choice("no", no, 1 - share))
