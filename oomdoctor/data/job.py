"""The job that the data is for: limit, rows per pass, padding, and bytes by the formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.book import FactBook
from oomdoctor.gathering import joined_texts
from oomdoctor.linting.book import completed
from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from oomdoctor.gathering import Gathered

PARTS = (
    ("activations", "saved activations", ("part.activations", "activations.estimate")),
    ("logits", "logits and loss", ("part.logits", "logits.peak")),
)
"""What grows with a batch: its key, its name, and the facts that state it, best first."""
NEEDED = ("model.layers", "model.hidden", "model.vocab", "train.grad_checkpointing")
MODEL = "config.json"


class Setting(NamedTuple):
    """A number that the job has, and who says so."""

    value: int
    source: str


class Part(NamedTuple):
    """One part of what a batch costs: its key, its name, and its bytes by the formula."""

    key: str
    name: str
    bytes: int
    source: str


class Job:
    """What configs and given facts say; without any, nothing is known and lengths stay tokens."""

    def __init__(self, gathered: Gathered, given: Sequence[Fact]) -> None:
        """Take what the configs gave, and what the user stated."""
        self._gathered = gathered
        self._given = tuple(given)
        self.book = self._completed(self._given)

    def _completed(self, given: Sequence[Fact]) -> FactBook:
        """Return what `given` and the configs say, and all that follows from it."""
        facts = joined_texts([*self._gathered.facts, *self._gathered.config_facts])
        return completed(FactBook().add(given).add(facts, closes=self._gathered.closes))

    def setting(self, key: str) -> Setting | None:
        """Return a number of the job, such as train.seq_len."""
        fact = self.book.get(key)
        if fact is None or isinstance(fact.value, (bool, str)):
            return None
        return Setting(int(fact.value), _source(fact))

    def flag(self, key: str) -> bool | None:
        """Return a truth value of the job."""
        value = self.book.value(key)
        return value if isinstance(value, bool) else None

    def word(self, key: str) -> str | None:
        """Return a word of the job."""
        value = self.book.value(key)
        return value if isinstance(value, str) else None

    def parts(self, *, rows: int, length: int) -> tuple[Part, ...]:
        """Return what a batch of `rows` sequences of `length` tokens costs, as far as is known."""
        said = "the rows of the data"
        kept = [one for one in self._given if one.key not in ("train.seq_len", "train.tokens")]
        own = (
            Fact(key="train.seq_len", value=length, source=said),
            Fact(key="train.tokens", value=rows * length, source=said),
        )
        book = self._completed((*own, *kept))
        found = []
        for key, name, keys in PARTS:
            fact = next((fact for fact in map(book.get, keys) if fact is not None), None)
            if fact is not None and not isinstance(fact.value, (bool, str)):
                found.append(Part(key, name, int(fact.value), fact.source or "formula"))
        return tuple(found)

    def missing(self) -> tuple[str, ...]:
        """Return the facts that bytes need and that nothing says."""
        return tuple(key for key in NEEDED if self.book.get(key) is None)


def job_of(configs: Sequence[str], given: Sequence[Fact], *, tokenizer: Path) -> Job:
    """Read the configs; the model's own config beside the tokenizer speaks after them."""
    from oomdoctor.pipeline import gather

    beside = tokenizer.parent / MODEL
    own = [str(beside)] if beside.is_file() and str(beside) not in configs else []
    return Job(gather([], config=[*configs, *own] or None), given)


def _source(fact: Fact) -> str:
    if fact.quotes:
        quote = fact.quotes[0]
        return f"{quote.artifact}:{quote.line}"
    word = fact.source or fact.origin.value
    return f"assumed: {word}" if fact.origin is Origin.ASSUMED else word
