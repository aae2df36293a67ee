"""Scripts are parsed once and walked once, however many readers look at them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from oomdoctor.configs import python_script
from oomdoctor.configs.setting import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize("functions", [10, 400])
def test_a_script_is_walked_a_few_times_whatever_its_length(
    monkeypatch: pytest.MonkeyPatch, functions: int
) -> None:
    walked: list[ast.AST] = []
    walk = ast.walk

    def counted(node: ast.AST) -> Iterator[ast.AST]:
        walked.append(node)
        return walk(node)

    text = "".join(f"def f{number}(x):\n    return x + {number}\n" for number in range(functions))
    monkeypatch.setattr(ast, "walk", counted)
    python_script.read(Lines.of_text("train.py", text))

    assert len([node for node in walked if isinstance(node, ast.Module)]) == 1
