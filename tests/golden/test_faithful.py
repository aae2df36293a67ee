"""Quotes carry the answer: without the lines quoted for the leading cause, it is another one.

The same inputs without those lines have to get another answer, or the cause that led has to lose
at least 0.2 of its probability; quotes that could go without a difference are decoration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.evidence.source import read_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LOSES = 0.2


def _quoted(said: Mapping[str, Any], name: str) -> set[int]:
    evidence = said["causes"][0]["evidence"]
    return {quote["line"] for quote in evidence if quote["artifact"] == name}


def _without_quoted(case: Any, said: Mapping[str, Any], folder: Path) -> None:
    """Copy the inputs; logs lose the lines that the leading cause quotes."""
    for name in case.configs:
        (folder / name).write_bytes((case.folder / name).read_bytes())
    for name in case.logs:
        quoted = _quoted(said, name)
        lines = read_source(str(case.folder / name)).lines
        kept = [text for number, text in lines if number not in quoted]
        (folder / name).write_text("\n".join(kept) + "\n", encoding="utf-8", newline="\n")


def test_quoted_lines_carry_the_leading_cause(
    case: Any, said_to: Any, ask_in: Any, tmp_path: Path
) -> None:
    said = said_to(case.name)
    if not said["causes"]:
        return
    leading = said["causes"][0]
    _without_quoted(case, said, tmp_path)

    again = ask_in(tmp_path, case.logs, case.configs)

    after = {one["cause"]: one["probability"] for one in again["causes"]}
    left = after.get(leading["cause"], 0.0)
    assert any(_quoted(said, name) for name in case.logs)
    assert again["answer"] != said["answer"] or left <= leading["probability"] - LOSES
