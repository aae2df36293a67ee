r"""Makes the text plain before names are looked for: escapes that hide a name, keys over lines.

    hf_ab<ESC>[0mcdef -> hf_abcdef         -----BEGIN RSA PRIVATE KEY-----\nMIIEpA... -> KEY1

The number of line feeds stays the same throughout.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.redaction.ordinary import is_ordinary
from oomdoctor.redaction.pattern import compiled
from oomdoctor.redaction.secrets import BEGINNINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    Place = Callable[[str, str], str]

_HIDDEN = dict.fromkeys((0, *range(1, 8), 0x7F, 0xAD, 0xFEFF, 0x200B, 0x200C, 0x200D, 0x2060))
_ESCAPES = (
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)?"
    r"|\x1b[@-Z\\^_=>78]|\x1b[()][A-Z0-9]|\x1b|\^\[\[[\d;]{0,32}[mK]"
)
_PEM = (
    r"(-----BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|CERTIFICATE|PUBLIC KEY|MESSAGE|K"
    r"EY BLOCK)[A-Z ]{0,20}-----)"
    r"((?:(?!-----BEGIN )[^\x1e]){0,20000}?)(-----END |\Z)"
)
_WRAP_COLUMNS = 60


def plain(text: str) -> str:
    """Return a text without terminal escapes and characters that nobody sees."""
    if "\x1b" in text or "^[[" in text:
        text = compiled(_ESCAPES).sub("", text)
    return text if text.isascii() and text.isprintable() else text.translate(_HIDDEN)


def without_keys(text: str, place: Place) -> str:
    """Replace the lines of private keys and certificates, one by one."""
    if "-----BEGIN " not in text:
        return text

    def replaced(found: re.Match[str]) -> str:
        ended = bool(found[3])
        pieces = re.split(r"(\n|\\+n|\\+r|\r)", found[2])
        return found[1] + "".join(_line(one, place, ended=ended) for one in pieces) + found[3]

    return compiled(_PEM).sub(replaced, text)


def _line(piece: str, place: Place, *, ended: bool) -> str:
    content = piece.strip(" \t\"',")
    if not content or piece.startswith("\\"):
        return piece
    if re.fullmatch(r"[A-Za-z0-9+/=_-]+", content) and (ended or len(content) >= 24):
        return piece.replace(content, place("KEY", content))
    return re.sub(r"[A-Za-z0-9+/=_]{24,}", lambda found: place("KEY", found[0]), piece)


def without_wrapped(text: str, place: Place) -> str:
    """Replace keys with a known beginning that a terminal broke at the end of its line."""
    if not any(begin in text for begin in BEGINNINGS):
        return text
    begins = "|".join(map(re.escape, BEGINNINGS))
    pattern = compiled(
        rf"(?<![A-Za-z0-9])(?P<one>(?:{begins})[\w=+/.-]{{0,400}})(?P<gap>\r?\n)(?"
        rf"P<two>[\w=+/-]{{1,400}})(?![\w.=+/-])"
    )

    def replaced(found: re.Match[str]) -> str:
        column = found.end("one") - (text.rfind("\n", 0, found.start()) + 1)
        if column < _WRAP_COLUMNS or not _goes_on(found["one"], found["two"]):
            return found[0]
        shown = place("SECRET", found["one"] + found["two"])
        return f"{shown}{found['gap']}{shown}"

    return pattern.sub(replaced, text)


def _goes_on(first: str, second: str) -> bool:
    """Say whether the beginning of a line looks like the rest of a key and not like a word."""
    if len(first) + len(second) < 16 or is_ordinary(second) or "SECRET" in first:
        return False
    mixed = any(map(str.isdecimal, second)) or (not second.islower() and not second.istitle())
    return mixed or len(first) < 16
