"""Containers that outlive a step and are given tensors of the device.

self.memory = deque(maxlen=100000)                 a replay buffer
state = torch.tensor(state).cuda()                 a tensor of the device
self.memory.append((state, action.cuda()))         it stays there as long as the container
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.configs import python_text

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDERS = frozenset(("append", "appendleft", "push", "extend", "put", "add", "insert", "store"))
OFF_DEVICE = frozenset(("cpu", "item", "numpy", "tolist", "save_to_disk"))
_TORCH_MAKERS = ("torch", "th")


@cache
def _lasting() -> re.Pattern[str]:
    return re.compile(
        r"memor|buffer|replay|histor|cache|bank|queue|deque|experience|rollout|trajector|storage",
        re.IGNORECASE,
    )


def kept(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Yield what puts device tensors into a container, and whether that one lives on."""
    names = _device_names(tree)
    for node in python_text.nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in ADDERS or not node.args:
                continue
            target, values = node.func.value, node.args
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target, values = node.targets[0].value, [node.value]
            if not _lasting().search(python_text.dotted(target)):
                continue
        else:
            continue
        if any(_holds(value, names) for value in values):
            where = python_text.dotted(target)
            lasting = where.startswith("self.") or _lasting().search(where) is not None
            yield node, lasting


def _device_names(tree: ast.AST) -> frozenset[str]:
    """Return the names whose every assignment leaves a tensor on the device."""
    on: set[str] = set()
    off: set[str] = set()
    for node in python_text.nodes(tree):
        if not isinstance(node, ast.Assign):
            continue
        held = _on_device(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                if held:
                    on.add(target.id)
                elif _taken_off(node.value):
                    off.add(target.id)
    return frozenset(on - off)


def _holds(value: ast.expr, names: frozenset[str]) -> bool:
    """Say whether a value, or an item of a tuple, is a tensor of the device."""
    if isinstance(value, (ast.Tuple, ast.List)):
        return any(_holds(item, names) for item in value.elts)
    if isinstance(value, ast.Dict):
        return any(_holds(item, names) for item in value.values)
    if _taken_off(value):
        return False
    if isinstance(value, ast.Name):
        return value.id in names
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return any(_holds(argument, names) for argument in value.args)
    return _on_device(value)


def _on_device(value: ast.expr) -> bool:
    """Say whether the outermost calls of an expression put a tensor on a GPU."""
    node: ast.AST = value
    while True:
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                if node.func.attr in OFF_DEVICE:
                    return False
                if node.func.attr == "cuda" or (node.func.attr == "to" and _to_gpu(node)):
                    return True
            if _makes_on_gpu(node):
                return True
            node = node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            return False


def _to_gpu(call: ast.Call) -> bool:
    places = [*call.args[:1], *(word.value for word in call.keywords if word.arg == "device")]
    return any(_is_gpu(place) for place in places)


def _makes_on_gpu(call: ast.Call) -> bool:
    head = python_text.called(call).partition(".")[0]
    if head not in _TORCH_MAKERS:
        return False
    return any(word.arg == "device" and _is_gpu(word.value) for word in call.keywords)


def _is_gpu(place: ast.expr) -> bool:
    text = (python_text.source(place) or "").lower()
    return "cpu" not in text and ("cuda" in text or "device" in text or "gpu" in text)


def _taken_off(value: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr in OFF_DEVICE for node in ast.walk(value)
    )
