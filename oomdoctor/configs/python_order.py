"""Variables that a script sets too late: XLA reads its own when jax is imported.

import jax
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"      has no effect any more
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

_READ_AT_IMPORT = "XLA_"


def read(block: Block) -> Iterator[tuple[Claim, Quote]]:
    """Say whether the first such variable is set before or after the import of jax."""
    imports = [_line(node) for node in python_text.nodes(block.tree) if _imports_jax(node)]
    settings = [node for node in python_text.nodes(block.tree) if _sets_variable(node)]
    if imports and settings:
        setting = min(settings, key=_line)
        late = Claim("xla.set_after_import", value=_line(setting) > min(imports))
        yield late, python_text.quote(setting, block.lines)


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _imports_jax(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] == "jax"
    return isinstance(node, ast.Import) and any(
        name.name.partition(".")[0] == "jax" for name in node.names
    )


def _sets_variable(node: ast.AST) -> bool:
    """Match `os.environ["XLA_..."] = x` and `os.environ.setdefault("XLA_...", x)`."""
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        name = target.slice if isinstance(target, ast.Subscript) else None
    elif isinstance(node, ast.Call) and python_text.called(node).endswith("environ.setdefault"):
        name = node.args[0] if node.args else None
    else:
        return False
    return (
        isinstance(name, ast.Constant)
        and isinstance(name.value, str)
        and name.value.startswith(_READ_AT_IMPORT)
    )
