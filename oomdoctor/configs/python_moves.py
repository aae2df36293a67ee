"""Scripts that bring a model to one card although something else was to place its parts.

model = AutoModel.from_pretrained(name, device_map="auto").cuda()      code.moves_mapped_model
pipe = DiffusionPipeline.from_pretrained(name).to("cuda")
pipe.enable_model_cpu_offload()                                       code.moves_before_offload
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oomdoctor.configs import python_text
from oomdoctor.configs.claims import Claim

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.python_text import Block
    from oomdoctor.model.core import Quote

_SPREADS = ("auto", "balanced", "balanced_low_0", "sequential")
_OFFLOADS = ("enable_model_cpu_offload", "enable_sequential_cpu_offload", "enable_group_offload")
_CARDS = ("cuda", "xpu", "device")


def read(block: Block) -> Iterator[tuple[Claim, Quote]]:
    """Find the first move of each kind, in the order of the lines."""
    mapped: set[str] = set()
    moved: dict[str, ast.Call] = {}
    found: set[str] = set()
    for call in _calls(block.tree):
        name, on = _method(call)
        told: tuple[str, ast.expr] | None = None
        if name == "from_pretrained" and _is_mapped(call):
            mapped.add(_target(block.tree, call))
        elif name in ("cuda", "to") and _to_card(call, name):
            owner = _owner(block.tree, call, on)
            moved.setdefault(owner, call)
            if owner in mapped or any(map(_is_mapped, _chain(on))):
                told = ("code.moves_mapped_model", call)
        elif name in _OFFLOADS and _root(on) in moved:
            told = ("code.moves_before_offload", moved[_root(on)])
        if told is not None and told[0] not in found:
            found.add(told[0])
            yield Claim(told[0], value=True), python_text.quote(told[1], block.lines)


def _calls(tree: ast.AST) -> list[ast.Call]:
    """Return all calls, the inner ones of a chain first."""
    calls = [node for node in python_text.nodes(tree) if isinstance(node, ast.Call)]
    return sorted(calls, key=lambda node: (node.lineno, node.end_lineno, node.end_col_offset))


def _method(call: ast.Call) -> tuple[str, ast.expr | None]:
    """Return the name of the method that is called, and what it is called on."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr, call.func.value
    return "", None


def _is_mapped(call: ast.Call) -> bool:
    """Say whether a call spreads the model over the devices there are."""
    words = {word.arg: word.value for word in call.keywords}
    value = words.get("device_map")
    return isinstance(value, ast.Constant) and value.value in _SPREADS


def _to_card(call: ast.Call, name: str) -> bool:
    """Match `.cuda()`, `.to("cuda:0")` and `.to(device)`; a cast is no move."""
    if name == "cuda":
        return True
    given = [*call.args[:1], *(word.value for word in call.keywords if word.arg == "device")]
    return any(part in ast.unparse(value).lower() for value in given for part in _CARDS)


def _chain(node: ast.expr | None) -> Iterator[ast.Call]:
    """Yield the calls that `node` is chained to: `a(...)` and `a(...).eval()` of the latter."""
    while node is not None:
        if isinstance(node, ast.Call):
            yield node
            node = node.func
        elif isinstance(node, ast.Attribute):
            node = node.value
        else:
            return


def _root(node: ast.expr | None) -> str:
    """Return the variable that a chain of calls and attributes starts at, empty without one."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _owner(tree: ast.AST, call: ast.Call, on: ast.expr | None) -> str:
    """Return the variable that is moved: the one called on, or the one the chain is given to."""
    loaded = any(_method(one)[0] == "from_pretrained" for one in _chain(on))
    return _target(tree, call) if loaded else _root(on)


def _target(tree: ast.AST, call: ast.Call) -> str:
    """Return the variable that the statement of `call` assigns, empty where it assigns none."""
    for node in python_text.nodes(tree):
        if isinstance(node, ast.Assign) and any(part is call for part in ast.walk(node.value)):
            target = node.targets[0]
            return target.id if isinstance(target, ast.Name) else ""
    return ""
