r"""Counting by words: what a tokenizer's description says about how a text becomes words.

    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "..."}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}

Anything else (Metaspace, WordPiece, several splits, dropout) is left to the library.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from oomdoctor.extras import Library

BYTE_LEVEL = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
MOST_WORDS = 150_000
LONGEST_WORD = 256
LONGEST_PATTERN = 2000
_CLASSES = {
    **dict.fromkeys(("L", "Letter"), "A-Za-z"),
    **dict.fromkeys(("N", "Nd"), "0-9"),
    "Lu": "A-Z",
    "Ll": "a-z",
    **dict.fromkeys(("Lt", "Lm", "Lo", "M", "Mn", "Mc"), ""),
}
# Python takes these for blanks, the tokenizers' patterns do not
_ODD_BLANKS = re.compile("[\x1c-\x1f]")
LONE = re.compile("[\ud800-\udfff]")


class Recipe(NamedTuple):
    """How a text becomes words: the pattern, whether NFC comes first, and tokens that stand out."""

    pattern: str
    nfc: bool
    added: tuple[str, ...]
    odd: tuple[str, ...]


def recipe_of(description: Mapping[str, Any]) -> Recipe | None:
    """Return the recipe that a tokenizer's description states; None where it is another one."""
    model = description.get("model") or {}
    normalizer = description.get("normalizer")
    nfc = isinstance(normalizer, dict) and normalizer.get("type") == "NFC"
    if model.get("type") != "BPE" or model.get("dropout") or (normalizer and not nfc):
        return None
    pattern = _pattern(description.get("pre_tokenizer"))
    if pattern is None or len(pattern) > LONGEST_PATTERN:
        return None
    simple: list[str] = []
    odd: list[str] = []
    for token in description.get("added_tokens") or ():
        plain = not any(token.get(key) for key in ("lstrip", "rstrip", "single_word"))
        plain = plain and not (nfc and token.get("normalized"))
        (simple if plain else odd).append(str(token.get("content") or ""))
    return Recipe(pattern, nfc, tuple(filter(None, simple)), tuple(filter(None, odd)))


def _pattern(held: object) -> str | None:
    if not isinstance(held, dict):
        return None
    if held.get("type") == "ByteLevel":
        usual = held.get("use_regex", True) and not held.get("add_prefix_space", True)
        return BYTE_LEVEL if usual else None
    parts = held.get("pretokenizers") or []
    if held.get("type") != "Sequence" or len(parts) != 2:
        return None
    split, level = parts
    bytes_only = level.get("type") == "ByteLevel" and not level.get("use_regex", True)
    bytes_only = bytes_only and not level.get("add_prefix_space", True)
    isolated = split.get("type") == "Split" and split.get("behavior") == "Isolated"
    if not (bytes_only and isolated) or split.get("invert"):
        return None
    found = (split.get("pattern") or {}).get("Regex")
    return found if isinstance(found, str) else None


def ascii_pattern(pattern: str) -> str | None:
    r"""Return a pattern with `\p{...}` spelled out for ASCII texts; None where it cannot be."""
    out: list[str] = []
    inside = False
    at = 0
    while at < len(pattern):
        sign = pattern[at]
        if pattern.startswith("\\p{", at):
            end = pattern.find("}", at)
            members = _CLASSES.get(pattern[at + 3 : end])
            if end < 0 or members is None or (not inside and not members):
                return None
            out.append(members if inside else f"[{members}]")
            at = end + 1
            continue
        if sign == "\\":
            if pattern[at + 1 : at + 2] in ("P", "X", "R", "h", "H", "G", "K"):
                return None
            out.append(pattern[at : at + 2])
            at += 2
            continue
        if (sign == "[" and inside) or pattern.startswith("&&", at):
            return None
        inside = sign == "[" or (inside and sign != "]")
        out.append(sign)
        at += 1
    return "".join(out)


class WordCounter:
    """Counts the tokens of texts word by word, and remembers the words."""

    def __init__(self, recipe: Recipe, machine: Library) -> None:
        """Prepare the patterns of a recipe for a tokenizer."""
        self._recipe = recipe
        self._known = _Known(machine)
        self._split = _splitter(recipe.added)
        spelled = ascii_pattern(recipe.pattern)
        self._find_ascii = _compiled_ascii(spelled)
        self._find_any: Callable[[str], Sequence[str]] | None = None
        self._asked = 0

    def count(self, text: str) -> int | None:
        """Return the number of tokens; None where only the library can tell."""
        if any(token in text for token in self._recipe.odd):
            return None
        if not text.isascii():
            if LONE.search(text):
                return None
            if self._recipe.nfc and not unicodedata.is_normalized("NFC", text):
                return None
        if _ODD_BLANKS.search(text):
            return None
        parts = [text] if self._split is None else self._split(text)
        total = len(parts) // 2  # every other part is a token that stands out
        for part in parts[::2]:
            words = self._words(part)
            if words is None or sum(map(len, words)) != len(part):
                return None
            self._asked += len(words)
            total += sum(map(self._known.__getitem__, words))
        if len(self._known) > MOST_WORDS:
            self._known.grow_old()
        return total

    def hit_share(self) -> float:
        """Return the share of words that were known already."""
        return 1.0 - self._known.cut / self._asked if self._asked else 1.0

    def _words(self, part: str) -> Sequence[str] | None:
        if self._find_ascii is not None and part.isascii():
            return self._find_ascii(part)
        if self._find_any is None:
            import regex

            try:
                self._find_any = regex.compile(self._recipe.pattern).findall
            except regex.error:
                self._find_any = lambda _: ()
        return self._find_any(part)


def _compiled_ascii(pattern: str | None) -> Callable[[str], Sequence[str]] | None:
    if pattern is None:
        return None
    try:
        made = re.compile(pattern)
    except re.error:  # possessive quantifiers before Python 3.11
        return None
    return made.findall if made.groups == 0 else None


def _splitter(tokens: Sequence[str]) -> Callable[[str], list[str]] | None:
    if not tokens:
        return None
    longest_first = sorted(tokens, key=len, reverse=True)
    made = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")
    return made.split


class _Known(dict[str, int]):
    """Words with their number of tokens; one that is new is cut by the tokenizer's model.

    When there are too many, all grow old: those that come again are kept, the others go next time.
    """

    def __init__(self, machine: Library) -> None:
        super().__init__()
        self._cut = machine.model.tokenize
        self._old: dict[str, int] = {}
        self.cut = 0

    def grow_old(self) -> None:
        """Keep the words of now for one more round, and forget those of the round before."""
        self._old = dict(self)
        self.clear()

    def __missing__(self, word: str) -> int:
        number = self._old.get(word)
        if number is None:
            number = len(self._cut(_spelled(word)))
            self.cut += 1
        if len(word) <= LONGEST_WORD:
            self[word] = number
        return number


def _spelled(word: str) -> str:
    """Return a word in the letters that byte-level tokenizers write for its bytes."""
    if word.isascii() and word.isprintable():
        return word.replace(" ", _BLANK)
    return word.encode().decode("latin-1").translate(_LETTERS)


def _letters() -> dict[int, int]:
    """Return for each byte the letter that byte-level tokenizers write for it."""
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in shown]
    return {byte: 256 + at for at, byte in enumerate(hidden)}


_LETTERS = _letters()
_BLANK = chr(_LETTERS[ord(" ")])
