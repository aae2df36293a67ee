"""Stretches of a script that were cut from different depths parse all the same."""

from __future__ import annotations

import ast

import pytest

from oomdoctor.configs.python_repair import repaired
from oomdoctor.configs.segments import split

PASTED = """\
self.memory = deque(maxlen=50000)

        if self.on_gpu:
            state = torch.tensor(state).cuda()
            action = torch.tensor(action).cuda()
 (...)

        self.memory.append((state, action))
"""


def test_a_deeper_stretch_after_a_blank_row_gets_a_block_of_its_own() -> None:
    made = repaired(PASTED.splitlines())

    assert made is not None
    assert [type(node).__name__ for node in made[0].body] == ["Assign", "If"]
    assert "self.memory.append((state, action))" in ast.unparse(made[0])


@pytest.mark.parametrize(
    "text", ["a = 1\n    b = 2\n", "    b = 2\n  c = 3\n a = 1\n", "a = 1\n\nb = 3\n   c = (\n"]
)
def test_no_free_row_and_no_end_stay_unparsed(text: str) -> None:
    assert repaired(text.splitlines()) is None


def test_a_remark_above_a_deeper_stretch_is_as_free_as_a_blank_row() -> None:
    made = repaired(["x = load()", "# further down", "    y = x.cuda()", "z = y"])

    assert made is not None
    assert ast.unparse(made[0]) == "x = load()\nif 1:\n    y = x.cuda()\nz = y"


def test_dots_for_what_was_left_out_do_not_part_a_script() -> None:
    assert [one.kind for one in split("c", PASTED)] == ["python"]


def test_dots_after_something_else_stay_notes() -> None:
    assert [one.kind for one in split("c", "lr: 3\n(...)\nseed: 1\n")] == ["yaml", "notes", "yaml"]
