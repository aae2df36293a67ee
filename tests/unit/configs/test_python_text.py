"""Scripts are parsed once and walked once, however many readers look at them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from oomdoctor.configs import python_script, python_text, segments
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


@pytest.mark.parametrize("rows", [100, 2000])
def test_brackets_that_never_close_are_followed_a_few_times(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    followed: list[int] = []
    extent = segments.python_extent

    def counted(lines: list[str], start: int) -> int:
        followed.append(start)
        return extent(lines, start)

    monkeypatch.setattr(segments, "python_extent", counted)
    python_script.read(Lines.of_text("train.py", "{\n" * rows))

    assert len(followed) == segments.MOST_UNCLOSED


def test_a_text_of_too_many_fields_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = ast.parse

    def counted(text: str) -> ast.Module:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(ast, "parse", counted)
    fields = "{a}" * (python_text.MAX_BRACES + 1)

    assert python_text.blocks(Lines.of_text("train.py", f'x = f"{fields}"\n')) == ()
    assert parsed == []
