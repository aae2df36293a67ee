"""Takes a pasted text apart: YAML, JSON objects, commands, Python and free notes, in their order.

# run_clm.py, 1 GPU                      notes
per_device_train_batch_size: 4           YAML
# ds_config.json                         a heading, starts something new
{"zero_optimization": {"stage": 2}}      JSON
accelerate launch train.py --bf16        a command
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.configs import json_text
from oomdoctor.configs.setting import Lines
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROGRAMS = (
    r"python[\d.]*|accelerate|torchrun|deepspeed|vllm|sglang|trl|axolotl|llamafactory-cli|tune|litgpt|ilab"
    r"|lmdeploy|docker|podman|nvidia-docker|srun|sbatch|mpirun|horovodrun|bash|sh|nohup|sudo|pip|conda"
    r"|export|setx?|uv|poetry|gunicorn|uvicorn|ollama|llama-[a-z-]+|ray|colossalai|xtuner|swift|nemo"
    r"|torchtune|lightning|composer|fairseq-[a-z-]+|nnUNet(?:v2)?_[a-z]+|tgi"
    r"|text-generation-launcher|pytest|jupyter|singularity|apptainer"
)


FOLLOWERS = ("else", "elif ", "except", "finally")
MAX_STATEMENT = 2000
MOST_UNCLOSED = 20
"""After so many statements whose brackets never close, none is followed any more."""
MOST_SEGMENTS = 400
"""Text that changes its kind more often is no config; the rest is notes."""


class Segment(NamedTuple):
    """A stretch of lines of one kind: yaml, json, command, python or notes."""

    kind: str
    lines: Lines


@cache
def _command() -> re.Pattern[str]:
    return re.compile(
        rf"\s*(?:[$!%>]\s*)?(?:[A-Za-z_]\w*=\S*\s+)*(?:(?:\S*/)?(?:{PROGRAMS})\s+[^=:\s]"
        r"|\S+\.(?:py|sh)\s+-|\.{0,2}/\S+\.sh\b|%env\s|#(?:SBATCH|PBS|\$)\s|ENV\s+\w+[= ])"
        r"|\s*--?[A-Za-z][\w.-]*(?:[= ]|\s*\\?$)"
    )


@cache
def _python() -> re.Pattern[str]:
    name = r"[A-Za-z_][\w.]*(?:\[[^\]]*\])?"
    return re.compile(
        r"\s*(?:import\s+[A-Za-z_]|from\s+[\w.]+\s+import\s|def\s+\w+\(|class\s+\w+[(:]|@\w"
        r"|(?:for|while|if|elif|with|async\s+\w+)\s[^:]*:\s*(?:#.*|\S.*)?$|(?:else|try|finally)\s*:\s*$"
        r"|except\b.*:|return\b|assert\s|del\s|raise\b|>>>\s"
        rf"|{name}(?:\s*,\s*{name})*\s+(?:=|\+=|-=|\*=)\s|{name}\(.*|{name}\s*=\s*{name}\()"
    )


@cache
def _yaml() -> re.Pattern[str]:
    key = r"(?:\"[^\"]{1,80}\"|'[^']{1,80}'|[A-Za-z_$.][\w.$/-]{0,80})"
    return re.compile(rf"\s*(?:-\s+)*{key}\s*:(?:\s|$)|\s*-\s+\S|---\s*$|\s*<<:\s")


@cache
def _assignment() -> re.Pattern[str]:
    return re.compile(r"\s*[A-Za-z_]\w*=\S+\s*(?:#.*)?$")


def line_kind(line: str) -> str:
    """Classify one line on its own; comments, blanks and bare assignments are neutral."""
    text = line.strip()
    if not text:
        return "blank"
    if text.startswith("#") and not text.startswith(("#SBATCH", "#PBS", "#!")):
        return "comment"
    if len(text) > 4000:
        return "notes"
    tests = (("command", _command), ("assignment", _assignment), ("python", _python))
    found = next((kind for kind, pattern in tests if pattern().match(line)), None)
    return found or ("yaml" if _yaml().match(line) else "notes")


def split(artifact: str, text: str) -> tuple[Segment, ...]:
    """Take a text apart into segments that cover all its lines."""
    rows = Lines.of_text(artifact, text).rows
    kinds = _kinds(rows)
    runs: list[tuple[str, list[tuple[int, str]]]] = []
    for (number, row), kind in zip(rows, kinds, strict=True):
        if len(runs) > MOST_SEGMENTS:
            runs[-1][1].append((number, row))
        elif len(runs) == MOST_SEGMENTS and runs[-1][0] != kind:
            runs.append(("notes", [(number, row)]))
        elif runs and (runs[-1][0] == kind or kind in ("blank", "comment")):
            runs[-1][1].append((number, row))
        elif runs and runs[-1][0] in ("blank", "comment") and kind != "json":
            runs[-1] = (kind, [*runs[-1][1], (number, row)])
        else:
            runs.append((kind, [(number, row)]))
    named = {"blank": "notes", "comment": "notes", "assignment": "notes"}
    return tuple(Segment(named.get(kind, kind), Lines(artifact, run)) for kind, run in runs)


def _kinds(rows: Sequence[tuple[int, str]]) -> list[str]:
    """Classify all lines, following what a line opens: brackets, blocks, continuations."""
    lines = [row for _, row in rows]
    kinds: list[str] = []
    starts = _json_spans(lines)
    unclosed = 0
    while len(kinds) < len(lines):
        at = len(kinds)
        if at in starts:
            kinds += ["json"] * starts[at]
            continue
        kind = line_kind(lines[at])
        taken = 1
        if kind == "command":
            while lines[at + taken - 1].rstrip().endswith("\\") and at + taken < len(lines):
                taken += 1
        elif kind in ("python", "assignment"):
            taken = python_extent(lines, at) if unclosed < MOST_UNCLOSED else 1
            unclosed += taken == 1 and opens(lines[at])
            kind = "python" if taken > 1 else kind
        kinds += [kind] * taken
    return _settle(kinds, lines)


def _json_spans(lines: list[str]) -> dict[int, int]:
    """Find JSON objects that begin and end at a line's border: first line -> number of lines."""
    text = "\n".join(lines)
    spans: dict[int, int] = {}
    offset, skip = 0, 0
    for number, line in enumerate(lines):
        if offset >= skip and line.lstrip()[:1] == "{" and len(spans) < 50:
            end = json_text.end_of_value(text, offset + len(line) - len(line.lstrip()))
            rest = text[end : text.find("\n", end) if "\n" in text[end:] else None] if end else ""
            if end and not rest.strip(" \t,;"):
                spans[number] = text.count("\n", offset, end) + 1
                skip = end
        offset += len(line) + 1
    return spans


def python_extent(lines: Sequence[str], start: int) -> int:
    """Count the lines of a Python statement: decorators, open brackets, the blocks it heads."""
    taken = _statement(lines, start)
    while taken < MAX_STATEMENT and start + taken < len(lines):
        head = lines[start].lstrip()[:1]
        row = lines[start + taken]
        same = row.strip() and _indent(row) == _indent(lines[start])
        if not same or not (head == "@" or row.lstrip().startswith(FOLLOWERS)):
            break
        taken += _statement(lines, start + taken)
        if head == "@" and not row.lstrip().startswith("@"):
            break
    return taken


def _statement(lines: Sequence[str], start: int) -> int:
    depth, taken = 0, 0
    while start + taken < len(lines) and taken < MAX_STATEMENT:
        bare = _quoted().sub("", lines[start + taken][:2000])
        depth += sum(bare.count(c) for c in "([{") - sum(bare.count(c) for c in ")]}")
        taken += 1
        if depth <= 0:
            break
    if depth > 0:
        return 1
    if not lines[start + taken - 1].split("#")[0].rstrip().endswith(":"):
        return taken
    indent = _indent(lines[start])
    while start + taken < len(lines):
        row = lines[start + taken]
        if row.strip() and _indent(row) <= indent:
            break
        taken += 1
    return taken


def opens(row: str) -> bool:
    """Say whether a line opens more brackets than it closes."""
    bare = _quoted().sub("", row[:2000])
    return sum(map(bare.count, "([{")) > sum(map(bare.count, ")]}"))


@cache
def _quoted() -> re.Pattern[str]:
    return re.compile(r"#.*$|\"[^\"]*\"|'[^']*'")


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())


def _settle(kinds: list[str], lines: list[str]) -> list[str]:
    """Give neutral assignments the kind of their neighbours, and nested YAML lists theirs."""
    settled = list(kinds)
    for at, kind in enumerate(kinds):
        if kind == "assignment":
            settled[at] = _neighbour(kinds, at)
        elif kind == "notes" and at and settled[at - 1] == "yaml" and lines[at][:1] in (" ", "\t"):
            settled[at] = "yaml"
        elif kind == "notes" and _left_out(lines[at]) and "python" in _before(settled, at):
            settled[at] = "comment"
    return settled


def _left_out(row: str) -> bool:
    """Say whether a row stands for lines that were left out: `...`, `(...)`."""
    text = row.strip(" \t()[]")
    return len(text) >= 3 and not text.strip(".")


def _before(kinds: list[str], at: int) -> tuple[str, ...]:
    """Return the kind of the last row before `at` that is not blank."""
    return tuple(kind for kind in kinds[:at] if kind != "blank")[-1:]


def _neighbour(kinds: list[str], at: int) -> str:
    for step in _outwards(at, len(kinds)):
        if kinds[step] in ("command", "python"):
            return kinds[step]
        if kinds[step] in ("yaml", "notes", "json"):
            break
    return "notes"


def _outwards(at: int, total: int) -> Iterator[int]:
    for distance in range(1, 40):
        if at + distance < total:
            yield at + distance
        if at - distance >= 0:
            yield at - distance
