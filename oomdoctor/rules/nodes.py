"""YAML text as nodes that know their line and column; duplicates and aliases are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from oomdoctor.errors import Location
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    import yaml

Data: TypeAlias = "dict[str, Data] | list[Data] | str | int | float | bool | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong in a rule file, with its place."""

    message: str
    location: Location

    def __str__(self) -> str:
        """Return `file:line:column: message`."""
        return f"{self.location}: {self.message}"


def compose(text: str, *, path: str) -> tuple[yaml.Node | None, tuple[Problem, ...]]:
    """Read YAML to nodes; syntax errors, aliases and duplicate keys come back as problems."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node = yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        return None, (_syntax_problem(error, path),)
    except (ValueError, RecursionError) as error:
        return None, (Problem(message=f"not YAML: {error}", location=Location(path=path)),)
    if node is None:
        return None, (Problem(message="the file is empty", location=Location(path=path)),)
    problems = tuple(_structure_problems(node, path, set()))
    return node, problems


def place(node: yaml.Node, path: str) -> Location:
    """Return where a node starts."""
    mark = node.start_mark
    return Location(path=path, line=mark.line + 1, column=mark.column + 1)


def _syntax_problem(error: Exception, path: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).splitlines()[0]
    at = (
        Location(path=path)
        if mark is None
        else Location(path=path, line=mark.line + 1, column=mark.column + 1)
    )
    return Problem(message=f"not YAML: {what}; quote texts that hold `: ` or ` #`", location=at)


def _structure_problems(node: yaml.Node, path: str, seen: set[int]) -> Iterator[Problem]:
    import yaml

    if id(node) in seen:
        yield Problem(message="aliases (*name) are not allowed", location=place(node, path))
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _structure_problems(item, path, seen)
    elif isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if not name or name == "<<":
                message = "expected a plain word as key"
                yield Problem(message=message, location=place(key, path))
            elif name in keys:
                message = f"duplicate key {name!r}"
                yield Problem(message=message, location=place(key, path))
            keys.add(name)
            yield from _structure_problems(value, path, seen)


def entries(node: yaml.Node) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """Return a mapping node's (key node, value node) by name; empty for another node."""
    import yaml

    if not isinstance(node, yaml.MappingNode):
        return {}
    return {str(key.value): (key, value) for key, value in node.value}


def data_of(node: yaml.Node, *, raw: bool = False) -> Data:
    """Return a node's plain value; `raw` keeps every scalar as the text that was written."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        return {str(key.value): data_of(value, raw=raw) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [data_of(item, raw=raw) for item in node.value]
    text = str(node.value)
    return text if raw else _scalar(text, node.tag.rpartition(":")[2])


def _scalar(text: str, tag: str) -> Data:
    try:
        match tag:
            case "bool":
                return text.lower() in ("true", "yes", "on")
            case "int":
                return int(text.replace("_", ""), 0)
            case "float":
                return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
            case "null":
                return None
            case _:
                return text
    except ValueError:
        return text
