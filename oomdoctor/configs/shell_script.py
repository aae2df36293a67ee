"""A shell script as commands; what it writes into files by itself is a config of its own.

cat > ds_config.json <<EOF
{"zero_optimization": {"stage": 2}}          JSON, by the name of the file
EOF
python - <<'PY'                              Python
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.configs.segments import Segment
from oomdoctor.configs.setting import Lines

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = {
    "yaml": "yaml",
    "yml": "yaml",
    "json": "json",
    "toml": "toml",
    "py": "python",
    "sh": "command",
}


@cache
def _opening() -> re.Pattern[str]:
    return re.compile(r"<<-?\s*([\"']?)([A-Za-z_]\w*)\1")


@cache
def _target() -> re.Pattern[str]:
    return re.compile(r"(?:>|\btee(?:\s+-a)?)\s*[\"']?\S*\.(\w+)[\"']?(?:\s|$)")


def split(artifact: str, text: str) -> tuple[Segment, ...]:
    """Take a script apart into its commands and the documents in it."""
    rows = Lines.of_text(artifact, text).rows
    commands: list[tuple[int, str]] = []
    made: list[Segment] = []
    at = 0
    while at < len(rows):
        line = rows[at][1]
        commands.append(rows[at])
        at += 1
        found = _opening().search(line) if "<<" in line and "<<<" not in line else None
        end = _end(rows, at, found[2]) if found else None
        if end is None:
            continue
        kind = _kind(line)
        if kind is not None and end > at:
            made += [Segment("command", Lines(artifact, commands))]
            made.append(Segment(kind, Lines(artifact, rows[at:end])))
            commands = []
        at = end + 1
    if commands:
        made.append(Segment("command", Lines(artifact, commands)))
    return tuple(made)


def _end(rows: Sequence[tuple[int, str]], start: int, mark: str) -> int | None:
    """Return the row of the mark that ends a document; None where none does."""
    return next((i for i in range(start, len(rows)) if rows[i][1].strip() == mark), None)


def _kind(line: str) -> str | None:
    """Say what a document is by the file or the program that takes it."""
    target = _target().search(line)
    if target is not None:
        return KINDS.get(target[1].lower())
    program = line.strip().partition(" ")[0].rpartition("/")[2]
    return "python" if program.startswith("python") else None
