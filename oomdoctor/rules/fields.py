"""Shapes that a field can have: each checks a YAML node and describes itself as JSON Schema."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from oomdoctor.record import dataclass, field
from oomdoctor.rules.nodes import Data, Problem, data_of, entries, place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import yaml


class Shape(Protocol):
    """What a field may look like."""

    def check(self, node: yaml.Node, path: str) -> Iterator[Problem]:
        """Yield all that is wrong with a node."""
        ...

    def json_schema(self) -> dict[str, object]:
        """Return the same limits as JSON Schema draft-07."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text of limited length, perhaps of a closed set or a pattern.

    `truth` lets YAML's own true and false stand for the words.
    """

    longest: int = 200
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    hint: str = ""
    truth: bool = False

    def check(self, node: yaml.Node, path: str) -> Iterator[Problem]:
        """Yield all that is wrong with a node."""
        value = data_of(node, raw=self.truth)
        if not isinstance(value, str) or not value.strip():
            given = "nothing" if value in (None, "") else f"{data_of(node, raw=True)!r}"
            yield _problem(node, path, f"expected a text, got {given}; quote it if it is one")
        elif self.choices and value not in self.choices:
            yield _problem(node, path, f"unknown {value!r}; {near(value, self.choices)}")
        elif len(value.rstrip()) > self.longest:
            yield _problem(node, path, f"{len(value.rstrip())} characters, at most {self.longest}")
        elif self.pattern and not re.search(self.pattern, value):
            yield _problem(node, path, f"{value!r} is not as expected: {self.hint}")

    def json_schema(self) -> dict[str, object]:
        """Return the same limits as JSON Schema draft-07."""
        if self.choices:
            return {"enum": [*self.choices, *([True, False] if self.truth else [])]}
        schema: dict[str, object] = {"type": "string", "minLength": 1, "maxLength": self.longest}
        if self.pattern:
            schema["pattern"] = self.pattern
        return schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number within bounds."""

    low: float
    high: float
    whole: bool = False

    def check(self, node: yaml.Node, path: str) -> Iterator[Problem]:
        """Yield all that is wrong with a node."""
        value = data_of(node)
        number = isinstance(value, int) if self.whole else isinstance(value, (int, float))
        if isinstance(value, bool) or not number:
            yield _problem(node, path, "expected a number")
        elif isinstance(value, (int, float)) and not self.low <= value <= self.high:
            yield _problem(node, path, f"{value} is not within {self.low} to {self.high}")

    def json_schema(self) -> dict[str, object]:
        """Return the same limits as JSON Schema draft-07."""
        kind = "integer" if self.whole else "number"
        return {"type": kind, "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list of one shape."""

    of: Shape
    least: int = 0
    most: int = 50

    def check(self, node: yaml.Node, path: str) -> Iterator[Problem]:
        """Yield all that is wrong with a node."""
        import yaml

        if not isinstance(node, yaml.SequenceNode):
            yield _problem(node, path, "expected a list (lines that start with `- `)")
            return
        if not self.least <= len(node.value) <= self.most:
            message = f"{len(node.value)} entries, expected {self.least} to {self.most}"
            yield _problem(node, path, message)
        for item in node.value:
            yield from self.of.check(item, path)

    def json_schema(self) -> dict[str, object]:
        """Return the same limits as JSON Schema draft-07."""
        return {
            "type": "array",
            "items": self.of.json_schema(),
            "minItems": self.least,
            "maxItems": self.most,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A mapping with free keys (or keys of a closed set) and values of one shape."""

    of: Shape
    keys: tuple[str, ...] = ()
    most: int = 60

    def check(self, node: yaml.Node, path: str) -> Iterator[Problem]:
        """Yield all that is wrong with a node."""
        import yaml

        if not isinstance(node, yaml.MappingNode):
            yield _problem(node, path, "expected a mapping (key: value)")
            return
        if len(node.value) > self.most:
            yield _problem(node, path, f"{len(node.value)} entries, at most {self.most}")
        for name, (key, value) in entries(node).items():
            if self.keys and name not in self.keys:
                yield _problem(key, path, f"unknown {name!r}; {near(name, self.keys)}")
            yield from self.of.check(value, path)

    def json_schema(self) -> dict[str, object]:
        """Return the same limits as JSON Schema draft-07."""
        schema: dict[str, object] = {"type": "object", "maxProperties": self.most}
        if self.keys:
            schema["properties"] = {key: self.of.json_schema() for key in self.keys}
            schema["additionalProperties"] = False
        else:
            schema["additionalProperties"] = self.of.json_schema()
        return schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """Any value that JSON can hold as well: a setting of a config file, a fact in a test."""

    scalar: bool = False

    def check(self, node: yaml.Node, path: str) -> Iterator[Problem]:
        """Yield all that is wrong with a node."""
        import yaml

        if self.scalar and not isinstance(node, yaml.ScalarNode):
            yield _problem(node, path, "expected a single value")

    def json_schema(self) -> dict[str, object]:
        """Return the same limits as JSON Schema draft-07."""
        return {"type": ["string", "number", "boolean"]} if self.scalar else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A named field of a record: its shape, whether it must be there, and what it means."""

    shape: Shape
    doc: str
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A mapping with known fields."""

    fields: Mapping[str, Field] = field(default_factory=dict)

    def check(self, node: yaml.Node, path: str) -> Iterator[Problem]:
        """Yield all that is wrong with a node."""
        import yaml

        if not isinstance(node, yaml.MappingNode):
            yield _problem(node, path, f"expected a mapping of {', '.join(self.fields)}")
            return
        given = entries(node)
        for name, (key, value) in given.items():
            known = self.fields.get(name)
            if known is None:
                yield _problem(key, path, f"unknown field {name!r}; {near(name, self.fields)}")
            else:
                yield from known.shape.check(value, path)
        for name, wanted in self.fields.items():
            if wanted.required and name not in given:
                yield _problem(node, path, f"missing field {name!r}: {wanted.doc}")

    def json_schema(self) -> dict[str, object]:
        """Return the same limits as JSON Schema draft-07."""
        return {
            "type": "object",
            "properties": {
                name: {**known.shape.json_schema(), "description": known.doc}
                for name, known in self.fields.items()
            },
            "required": [name for name, known in self.fields.items() if known.required],
            "additionalProperties": False,
        }


def near(word: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    """Say which known words are meant, or list them."""
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), n=2, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"expected one of {', '.join(known)}"


def _problem(node: yaml.Node, path: str, message: str) -> Problem:
    return Problem(message=message, location=place(node, path))


__all__ = [
    "Data",
    "Field",
    "Items",
    "Number",
    "Plain",
    "Record",
    "Shape",
    "Table",
    "Text",
    "near",
]
