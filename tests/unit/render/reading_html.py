"""Reads an HTML report as a browser would: what it says, what it runs, what it would load."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset(("meta", "br", "img", "hr", "link", "input"))
LOADING = ("src", "href", "xlink:href", "srcset", "data", "action", "poster", "formaction")


@dataclass
class Html:
    """A document: its elements, its text without scripts and styles, and what it holds of those."""

    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""
    scripts: list[str] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    style: str = ""

    @property
    def tags(self) -> set[str]:
        """The names of all elements."""
        return {tag for tag, _ in self.elements}

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a name."""
        return [attributes for one, attributes in self.elements if one == tag]

    @property
    def loads(self) -> list[str]:
        """What the document would ask for: anything but places within itself."""
        named = [
            attributes[name] or ""
            for _, attributes in self.elements
            for name in LOADING
            if name in attributes
        ]
        return [one for one in named if not one.startswith("#")]

    @property
    def policy(self) -> str:
        """The Content-Security-Policy."""
        return next(
            one["content"] or ""
            for one in self.all("meta")
            if one.get("http-equiv") == "Content-Security-Policy"
        )


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.made = Html()
        self.open: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.made.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.made.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        tag, attributes = self.open[-1] if self.open else ("", {})
        if tag == "style":
            self.made.style += data
        elif tag == "script":
            is_data = attributes.get("type") == "application/json"
            (self.made.data if is_data else self.made.scripts).append(data)
        else:
            self.made.text += data


def read_html(document: str) -> Html:
    """Read a document whose elements are all closed, that loads nothing and runs only its own."""
    reader = _Reader()
    reader.feed(document)
    reader.close()
    assert reader.open == []
    made = reader.made
    assert made.loads == []
    assert "url(" not in made.style
    assert "@import" not in made.style
    assert not any(name.startswith("on") for _, one in made.elements for name in one)
    sums = [hashlib.sha256(one.encode()).digest() for one in made.scripts]
    allowed = " ".join(f"'sha256-{base64.b64encode(one).decode()}'" for one in sums)
    assert f"script-src {allowed}; connect-src 'none'" in made.policy
    return made
