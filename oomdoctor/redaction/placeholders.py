"""Numbers what was taken out: the same name gets the same placeholder in all texts.

A host keeps its number, so that the nodes of one cluster stay apart:

    lena -> USER1    gpu-box-7 -> HOST1-7    dgx-[03-07] -> HOST2-[03-07]    10.12.0.7 -> ADDRESS1
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.redaction.ordinary import is_ordinary
from oomdoctor.redaction.pattern import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = (
    "USER", "HOST", "ADDRESS", "MAC", "EMAIL", "SECRET", "KEY", "GPU", "SERIAL", "MACHINE",
    "ACCOUNT", "NAMESPACE", "BUCKET", "PROJECT", "PHONE",
)  # fmt: skip
_MOST_EXPANDED = 1024
_LITERAL_LENGTH = 6


class Placeholders:
    """What stands for what; `known` maps spellings to replace wherever they stand."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._numbers: dict[tuple[str, str], int] = {}
        self._last: dict[str, int] = {}
        self.known: dict[str, str] = {}
        self.secrets: dict[str, str] = {}

    def of(self, kind: str, value: str, *, spreads: bool = True) -> str:
        """Return the placeholder of a value; one that `spreads` is replaced elsewhere, too."""
        if kind == "HOST":
            return ",".join(self._host(one, spreads=spreads) for one in _items(value))
        plain = _decoded(value)
        placeholder = self._numbered(kind, plain)
        if kind in ("SECRET", "KEY"):
            self._learn_secret(value, placeholder)
        elif spreads:
            self._learn({value, plain}, placeholder)
        if kind == "EMAIL":
            local = re.split(r"@|%40|\+", plain)[0]
            if len(local) >= 4 and not is_ordinary(local):
                self._learn({local}, self._numbered("USER", local))
        return placeholder

    def _numbered(self, kind: str, value: str) -> str:
        key = (kind, value.casefold())
        if key not in self._numbers:
            self._last[kind] = self._last.get(kind, 0) + 1
            self._numbers[key] = self._last[kind]
        number = self._numbers[key]
        if kind == "GPU":
            prefix = value[:4].upper() if value[:4].upper() in ("GPU-", "MIG-") else ""
            key = (kind, value.casefold()[len(prefix) :])
            number = self._numbers.setdefault(key, number)
            shown = f"{prefix}{number:08d}-0000-0000-0000-000000000000"
        else:
            shown = f"{kind}{number}"
        return shown

    def _host(self, name: str, *, spreads: bool) -> str:
        label, dot, _ = name.partition(".")
        ranged = compiled(r"^(.*?)-?(\[[\d,-]+\])").match(name)
        if ranged is not None:
            base = self._numbered("HOST", ranged[1])
            for one in _expanded(ranged[1], ranged[2], name):
                self._learn({one}, f"{base}-{one[len(ranged[1]) :].lstrip('-')}")
            return f"{base}-{ranged[2]}"
        parts = compiled(r"^([A-Za-z][A-Za-z_-]*(?:\d[\w-]*[A-Za-z_-])?)(?<!ip)-?(\d{1,4})$").match(
            label
        )
        if parts is None or label.startswith("ip-"):
            placeholder = self._numbered("HOST", label if len(label) > 2 else name)
        else:
            placeholder = f"{self._numbered('HOST', parts[1].rstrip('-'))}-{parts[2]}"
        if spreads:
            self._learn({name} | ({label} if dot and len(label) >= 4 else set()), placeholder)
        return placeholder

    def _learn(self, spellings: set[str], placeholder: str) -> None:
        for spelling in spellings:
            if not is_ordinary(spelling) and not is_placeholder(spelling):
                for one in _spellings(spelling):
                    self.known.setdefault(one, placeholder)

    def _learn_secret(self, value: str, placeholder: str) -> None:
        long_enough = len(value) >= (10 if value.isdecimal() else _LITERAL_LENGTH)
        if long_enough and not is_ordinary(value) and not is_placeholder(value):
            for one in _encodings(value):
                self.secrets.setdefault(one, placeholder)


@cache
def placeholder_pattern() -> re.Pattern[str]:
    """Match a placeholder."""
    kinds = "|".join(KINDS)
    zeros = r"(?:GPU-|MIG-)?\d{8}-0000-0000-0000-000000000000"
    return re.compile(rf"(?<![A-Za-z0-9])(?:{kinds})\d{{1,6}}(?![A-Za-z0-9])|{zeros}")


def is_placeholder(text: str) -> bool:
    """Say whether a placeholder stands in a text."""
    return placeholder_pattern().search(text) is not None


def _items(value: str) -> list[str]:
    """Split a list of hosts at the commas that stand outside brackets."""
    return compiled(r"(?:[^,\[]|\[[^\]]*\]?)+").findall(value) or [value]


def _expanded(base: str, ranges: str, name: str) -> Iterator[str]:
    dash = "-" if name[len(base) : len(base) + 1] == "-" else ""
    left = _MOST_EXPANDED
    for part in ranges.strip("[]").split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            continue
        for number in range(int(first), min(int(last or first), int(first) + left) + 1):
            left -= 1
            yield f"{base}{dash}{number:0{len(first)}d}"


def _decoded(value: str) -> str:
    r"""Return a name without the escapes of JSON (`j\u00f3zef`) and of URLs (`j%C3%B3zef`)."""
    if "\\u" in value:
        value = compiled(r"\\u([0-9a-fA-F]{4})").sub(lambda found: chr(int(found[1], 16)), value)
    if "%" in value:
        from urllib.parse import unquote

        value = unquote(value)
    return value


def _spellings(name: str) -> set[str]:
    spellings = {name, name.lower(), name.upper(), name.capitalize()}
    if not name.isascii():
        from unicodedata import normalize

        spellings |= {normalize(form, one) for form in ("NFC", "NFD") for one in set(spellings)}
        spellings |= {one for each in set(spellings) for one in _encodings(each)}
    return {one for one in spellings if not is_ordinary(one)}


def _encodings(value: str) -> set[str]:
    """Return a text as it is, as JSON writes it, and as URLs do."""
    import json
    from urllib.parse import quote

    encodable = value.encode("utf-8", errors="replace")
    return {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(encodable, safe=""),
        quote(encodable),
    }
