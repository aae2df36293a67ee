r"""How many tokens a text has, by the tokenizer itself or by words whose counts are remembered.

Byte-level BPE cuts a text into words by a pattern and each word into tokens by itself, so a word
needs to be cut once. That is several times as fast, and used only where the tokenizer's own
description shows that it works so; the first texts are counted both ways, and a difference ends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.data.words import LONE, WordCounter, recipe_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.data.tokenizer import Tokens

BATCH_CHARACTERS = 256 * 1024
CHECKED_TEXTS = 64
LEAST_HITS = 0.5
"""Share of words that must be known already, or else remembering them does not pay."""


class Counter:
    """Counts tokens of texts with one tokenizer; `exact` is what the library itself counts."""

    def __init__(self, tokens: Tokens, *, by_words: bool = True) -> None:
        """Find out how to count with this tokenizer."""
        self._machine: Any = tokens.machine
        self._added = self._machine.num_special_tokens_to_add(is_pair=False)
        recipe = recipe_of(tokens.description) if by_words else None
        self._words = None if recipe is None else WordCounter(recipe, self._machine)
        self._unchecked = CHECKED_TEXTS

    @property
    def by_words(self) -> bool:
        """Say whether words are remembered."""
        return self._words is not None

    def count(self, texts: Sequence[str], *, special: bool) -> list[int]:
        """Return the number of tokens of each text."""
        if self._words is None:
            return self.exact(texts, special=special)
        more = self._added if special else 0
        found = [self._words.count(text) for text in texts]
        open_texts = [text for text, known in zip(texts, found, strict=True) if known is None]
        rest = iter(self.exact(open_texts, special=special))
        counts = [next(rest) if known is None else known + more for known in found]
        if self._unchecked > 0:
            counts = self._checked(texts, counts, special=special)
        elif self._words.hit_share() < LEAST_HITS:
            self._words = None
        return counts

    def _checked(self, texts: Sequence[str], counts: list[int], *, special: bool) -> list[int]:
        """Compare the first texts with the library's own counts; believe the library."""
        first = texts[: self._unchecked]
        self._unchecked -= len(first)
        if self.exact(first, special=special) == counts[: len(first)]:
            return counts
        self._words = None
        return self.exact(texts, special=special)

    def exact(self, texts: Sequence[str], *, special: bool) -> list[int]:
        """Return what the library counts, a batch at a time so that memory stays bounded."""
        counts: list[int] = []
        batch: list[str] = []
        size = 0
        for text in texts:
            batch.append(text)
            size += len(text)
            if size >= BATCH_CHARACTERS:
                counts += self._encoded(batch, special=special)
                batch, size = [], 0
        return counts + self._encoded(batch, special=special)

    def _encoded(self, batch: list[str], *, special: bool) -> list[int]:
        if not batch:
            return []
        clean = [LONE.sub("\ufffd", text) for text in batch]
        encode = getattr(self._machine, "encode_batch_fast", self._machine.encode_batch)
        return [len(one) for one in encode(clean, add_special_tokens=special)]
