"""Sets, takes out and renames settings in a Python script, by the positions in its tree.

args = SFTConfig(output_dir="out", bf16=True)  ->  SFTConfig(output_dir="out", bf16=True, ...)
block_size = 1024                              ->  block_size = 512
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.configs import change, python_cut, python_place, python_takers, python_text
from oomdoctor.configs.difference import nested, same
from oomdoctor.configs.python_span import offset, put, span
from oomdoctor.configs.setting import Lines
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.configs.difference import Wanted
    from oomdoctor.configs.python_place import Place


class Found(NamedTuple):
    """Where a setting stands (None: nowhere), the rest of its name, and the call to give it to."""

    place: Place | None
    rest: list[str]
    call: ast.Call | None = None


def edit(text: str, wanted: Wanted, dialect: str) -> str | None:
    """Return the script with all wanted changes; None where nothing in it takes them."""
    for key, value in wanted.items():
        if not python_takers.may_take(text, key, dialect):
            return None
        changed = _change(text, key, value, dialect)
        if changed is None:
            return None
        text = changed
    return text


def held(text: str, key: str, dialect: str) -> tuple[bool, object]:
    """Return whether a setting is given in the script, and its value."""
    tree = _tree(text)
    found = _find(tree, key, dialect) if tree is not None else None
    if tree is None or found is None or found.place is None or found.rest:
        return False, None
    return True, _literal(found.place.value, tree)


def _literal(node: ast.expr, tree: ast.Module) -> object:
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return python_text.value_of(node, python_text.Names(tree))
    return value


def _tree(text: str) -> ast.Module | None:
    blocks = python_text.blocks(Lines.of_text("", text))
    return blocks[0].tree if len(blocks) == 1 and blocks[0].lines.shift == 0 else None


def _find(tree: ast.Module, key: str, dialect: str) -> Found:
    """Find a setting: in the calls that take it, then as a name or a default of the script."""
    names, name = python_takers.takers(key, dialect)
    first, *rest = name.split(".")
    calls = [node for node in python_text.nodes(tree) if isinstance(node, ast.Call)]
    called = [c for n in names for c in calls if python_takers.is_called(c, n)]
    shown = python_text.Names(tree)
    for call in called:
        place = python_place.argument(shown, call, first)
        if place is not None:
            return Found(*python_place.inside(place, rest))
    for place in _beside(tree, key, dialect):
        if place is not None:
            return Found(place, [])
    if dialect == "deepspeed":
        return _in_dictionary(tree, key.split("."))
    return Found(None, [first, *rest], called[0] if called else None)


def _beside(tree: ast.Module, key: str, dialect: str) -> tuple[Place | None, ...]:
    """Look where no call names a setting."""
    if dialect in ("python", "nanogpt"):
        return (python_place.assigned(tree, key),)
    return (python_place.default(tree, key.rpartition(".")[2]),)


def _in_dictionary(tree: ast.Module, names: list[str]) -> Found:
    """Find the dictionary of a DeepSpeed config in a script."""
    for node in python_text.nodes(tree):
        if isinstance(node, ast.Dict) and any(
            python_place.entry(node, mark) for mark in python_takers.DEEPSPEED
        ):
            place = python_place.Place(node)
            return Found(*python_place.inside(place, names))
    return Found(None, names)


def _change(text: str, key: str, value: object, dialect: str) -> str | None:
    tree = _tree(text)
    if tree is None:
        return None
    found = _find(tree, key, dialect)
    if not change.sets(value):
        return _ordered(text, found, value)
    if found.place is None:
        return _added(text, tree, found, (key, value, dialect))
    node = found.place.value
    if found.rest and isinstance(node, (ast.Dict, ast.Call)):
        return _into(text, node, found.rest, value)
    if not found.rest and same(_literal(node, tree), value):
        return text
    where = span(text, node)
    return put(text, where, _written(nested(found.rest, value), text[where.start]))


def _written(value: object, old: str) -> str:
    """Write a value; a text gets the kind of quotes that stood there."""
    written = repr(value)
    plain = isinstance(value, str) and not any(mark in value for mark in "\"'\\")
    return f'"{value}"' if old == '"' and plain else written


def _ordered(text: str, found: Found, value: object) -> str | None:
    """Take a setting out, or give it another name; where no call could have it, None."""
    if found.place is None or found.rest:
        return None if found.place is None and found.call is None else text
    name = change.new_name(value)
    if name is None:
        return python_cut.remove(text, found.place)
    holder = found.place.holder
    taken = (
        any(word.arg == name for word in holder.keywords)
        if isinstance(holder, ast.Call)
        else isinstance(holder, ast.Dict) and python_place.entry(holder, name) is not None
    )
    return None if taken else python_cut.rename(text, found.place, name)


def _added(
    text: str, tree: ast.Module, found: Found, wanted: tuple[str, object, str]
) -> str | None:
    """Give a setting to the call that takes it, or write it behind a file of bare settings."""
    key, value, dialect = wanted
    if dialect == "nanogpt" and "." not in key:
        ended = "\r\n" if "\r\n" in text else "\n"
        row = "" if not text or text.endswith("\n") else ended
        return f"{text}{row}{key} = {value!r}{ended}"
    if found.call is None or python_place.is_open(python_text.Names(tree), found.call):
        return None
    first, *rest = found.rest
    return _add(text, found.call, f"{first}={nested(rest, value)!r}")


def _into(text: str, node: ast.Dict | ast.Call, names: list[str], value: object) -> str | None:
    """Add an entry to a dictionary, or an argument to a call inside another."""
    if isinstance(node, ast.Call):
        return _add(text, node, f"{names[0]}={nested(names[1:], value)!r}")
    written = f"{names[0]!r}: {nested(names[1:], value)!r}"
    if not node.values:
        return put(text, span(text, node), "{" + written + "}")
    key = node.keys[-1]
    begin = span(text, key or node.values[-1]).start
    return _behind(text, (begin, span(text, node.values[-1]).end, span(text, node).end), written)


def _add(text: str, call: ast.Call, written: str) -> str | None:
    """Add an argument behind the last one, on a line of its own where the last one has one."""
    arguments = [*call.args, *(word.value for word in call.keywords)]
    close = span(text, call).end - 1
    if not arguments:
        return text[:close] + written + text[close:]
    last = max((span(text, node) for node in arguments), key=lambda found: found.end)
    starts = [*(span(text, node).start for node in call.args)]
    starts += [offset(text, word.lineno, word.col_offset) for word in call.keywords]
    begin = max(start for start in starts if start <= last.start)
    return _behind(text, (begin, last.end, close + 1), written)


def _behind(text: str, places: tuple[int, int, int], written: str) -> str:
    """Write an item behind the last one of a list, whose begin, end and list's end are given."""
    begin, end, close = places
    while text[end : close - 1].lstrip().startswith(")"):  # parentheses around the last value
        end = text.index(")", end) + 1
    row = text.rfind("\n", 0, begin) + 1
    lead = text[row:begin]
    between = text[end : close - 1]
    if lead.strip() or "\n" not in between:
        return f"{text[:end]}, {written}{text[end:]}"
    line_end = text.find("\n", end)
    ended = "\r" if text[line_end - 1 : line_end] == "\r" else ""
    rest = text[end : line_end - len(ended)]
    comma = "" if rest.lstrip().startswith(",") else ","
    return f"{text[:end]}{comma}{rest}{ended}\n{lead}{written},{ended}{text[line_end:]}"
