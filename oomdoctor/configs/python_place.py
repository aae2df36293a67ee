"""Where a setting stands in a script: as an argument, in a dictionary, as a name, as a default.

SFTConfig(bf16=True)                                an argument of a known call
options = {"bf16": True}; SFTConfig(**options)      an entry of the dictionary that it is given
torch.backends.cudnn.benchmark = True               an assignment
parser.add_argument("--lr", default=1e-4)           the default of the script's own argument
learning_rate: float = field(default=1e-4)          and of a field of its own arguments
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.configs import python_text
from oomdoctor.configs.setting import normal
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

FIELDS = frozenset(("field", "Field", "HfArg"))


class Place(NamedTuple):
    """The value of a setting, what names it, and the call or dictionary that holds both.

    `name` is a keyword, the key of a dictionary or the statement of an assignment; None for a
    default, whose name belongs to the script itself.
    """

    value: ast.expr
    name: ast.keyword | ast.expr | ast.stmt | None = None
    holder: ast.Call | ast.Dict | None = None


def argument(names: python_text.Names, call: ast.Call, name: str) -> Place | None:
    """Find an argument of a call, in the dictionaries that it is given as well."""
    for word in call.keywords:
        if word.arg == name:
            return Place(word.value, word, call)
    for spread in spreads(names, call):
        if isinstance(spread, ast.Dict):
            found = entry(spread, name)
        else:
            found = argument(names, spread, name)
        if found is not None:
            return found
    return None


def spreads(names: python_text.Names, call: ast.Call) -> Iterator[ast.Dict | ast.Call]:
    """Go through the dictionaries behind `**name` that the script itself writes out."""
    for word in call.keywords:
        if word.arg is not None:
            continue
        value: ast.expr | None = word.value
        if isinstance(value, ast.Name):
            value = names.values.get(value.id)
        plain = isinstance(value, ast.Call) and python_text.called(value) == "dict"
        if isinstance(value, (ast.Dict, ast.Call)) and (plain or isinstance(value, ast.Dict)):
            yield value


def is_open(names: python_text.Names, call: ast.Call) -> bool:
    """Say whether a call takes arguments from somewhere that the script does not show."""
    shown = list(spreads(names, call))
    return sum(word.arg is None for word in call.keywords) > len(shown) or any(
        isinstance(found, ast.Dict) and None in found.keys for found in shown
    )


def entry(holder: ast.Dict, name: str) -> Place | None:
    """Find an entry of a dictionary by its key."""
    for key, value in zip(holder.keys, holder.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == name:
            return Place(value, key, holder)
    return None


def inside(place: Place, names: list[str]) -> tuple[Place, list[str]]:
    """Follow a dotted name into dictionaries and calls as far as it goes; return what is left."""
    while names:
        found = None
        if isinstance(place.value, ast.Dict):
            found = entry(place.value, names[0])
        elif isinstance(place.value, ast.Call):
            words = place.value.keywords
            word = next((word for word in words if word.arg == names[0]), None)
            found = Place(word.value, word, place.value) if word is not None else None
        if found is None:
            break
        place, names = found, names[1:]
    return place, names


def assigned(tree: ast.Module, key: str) -> Place | None:
    """Find what is assigned to a dotted name, the last time it is."""
    found = None
    for node in python_text.nodes(tree):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if python_text.dotted(target) == key:
            found = Place(node.value, node)
    return found


def default(tree: ast.Module, key: str) -> Place | None:
    """Find the default of an argument that the script defines: argparse's, or a field's."""
    for node in python_text.nodes(tree):
        if isinstance(node, ast.Call) and python_text.called(node).endswith("add_argument"):
            if key in flags(node):
                return next((Place(w.value) for w in node.keywords if w.arg == "default"), None)
        elif isinstance(node, ast.ClassDef):
            for field in fields(node):
                if field[0] == key:
                    return Place(field[1])
    return None


def flags(call: ast.Call) -> tuple[str, ...]:
    """Return the names that `add_argument` is given, as settings spell them."""
    return tuple(
        normal(arg.value.lstrip("-"))
        for arg in call.args
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str) and arg.value[:1] == "-"
    )


def fields(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Go through the annotated fields of a class: their names and the defaults' nodes."""
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or statement.value is None:
            continue
        if not isinstance(statement.target, ast.Name):
            continue
        value: ast.expr = statement.value
        if isinstance(value, ast.Call):
            if python_text.called(value).rpartition(".")[2] not in FIELDS:
                continue
            word = next((w for w in value.keywords if w.arg == "default"), None)
            if word is None:
                continue
            value = word.value
        yield statement.target.id, value
