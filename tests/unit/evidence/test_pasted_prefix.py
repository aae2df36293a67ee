"""Quote marks, margins, numbers and names that collectors put before every line."""

from __future__ import annotations

import re

import pytest

from oomdoctor.evidence import pasted_prefix as prefix_patterns
from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.source import source_of_text

LINES = (
    "Traceback (most recent call last):",
    '  File "fit.py", line 12, in <module>',
    "    loss = net(batch)",
    "step 12 loss 2.5",
    "RuntimeError: CUDA out of memory.",
)
STAMP = "2026-11-30T08:30:45.123"


def texts(lines: list[str]) -> list[str]:
    return [line.text for line in clean(source_of_text("\n".join(lines))).lines]


@pytest.mark.parametrize(
    "prefix",
    [
        "> ",
        ">> ",
        "> > ",
        "    ",
        "\t",
        f"train\tRun tests\t{STAMP}4567Z ",
        f"{STAMP}456+00:00 gpu07 python[42]: ",
        f"[{STAMP}Z] [3] ",
        f"{STAMP}Z node1: ",
        "job-worker-3 main ",
        "node-3 2026-11-30 08:30:45 ",
        "Nov 30 08:30:45.123 ",
        "[1,mpirank:3,algo-1]<stderr>:",
        "08:30:45 ",
        "2026-11-30 08:30:45 | ERROR | ",
        "2026-11-30 08:30:45,123 - INFO - ",
        "[2026-11-30 08:30:45,123] [INFO] ",
    ],
)
def test_a_prefix_on_every_line_is_taken_off(prefix: str) -> None:
    assert list(LINES) == texts([prefix + line for line in LINES])


@pytest.mark.parametrize("form", ["{:6d}\t{}", "{:5d}  {}", "{}:{}"])
def test_numbers_of_lines_are_taken_off(form: str) -> None:
    numbered = [form.format(at, line) for at, line in enumerate(LINES * 2, start=9)]

    assert list(LINES * 2) == texts(numbered)


def test_two_numbered_lines_of_a_traceback_are_enough() -> None:
    assert list(LINES[1:3]) == texts([f"{at:5d}  {line}" for at, line in enumerate(LINES[1:3], 7)])


@pytest.mark.parametrize("level", ["ERROR", "INFO"])
@pytest.mark.parametrize("between", [" | ", " - "])
def test_a_level_goes_from_the_lines_of_a_traceback(level: str, between: str) -> None:
    dump = [line for line in LINES if "loss 2.5" not in line]

    assert dump == texts([f"2026-11-30 08:30:45,123{between}{level}{between}{x}" for x in dump])


def test_the_stamp_before_a_shared_prefix_is_kept() -> None:
    source = source_of_text("\n".join(f"[{STAMP}Z] [3] {line}" for line in LINES))

    assert {(3, f"{STAMP}Z")} == {(line.rank, line.stamp) for line in clean(source).lines}


def test_frames_alone_keep_their_own_margin() -> None:
    frames = [LINES[1], LINES[2], LINES[1]]

    assert frames == texts(["    " + line for line in frames])


@pytest.mark.parametrize(
    "lines",
    [
        [f"{at}  card {at}: 80 GiB" for at in range(8)],
        [f"node-{at} loads shard-{at} " for at in range(8)],
        ["[INFO] [engine.py:12:run] ready"] * 8,
        ["08:30:45", "08:30:46", "08:30:47", "08:30:48", "08:30:49"],
    ],
)
def test_a_first_column_that_is_content_stays(lines: list[str]) -> None:
    shown = [line.text or line.raw for line in clean(source_of_text("\n".join(lines))).lines]

    assert lines == shown


@pytest.mark.parametrize("name", ["_before_stamp", "_container", "_host_and_unit", "_one_level"])
def test_a_prefix_is_looked_for_in_a_bounded_part_of_a_line(name: str) -> None:
    pattern = getattr(prefix_patterns, name)().pattern

    assert re.findall(r"\(\?=[^()]*[\])][*+]", pattern) == []


@pytest.mark.parametrize("row", ["    ^^^^^", "    x = f(", "  | epoch", "\tat frame"])
def test_an_indented_listing_before_a_dump_is_no_margin_of_the_dump(row: str) -> None:
    assert list(LINES) == texts([*[row] * 3000, *LINES])[3000:]


def test_a_margin_stays_one_where_only_prose_behind_it_has_none() -> None:
    moved = [f"    {line}" for line in LINES * 100]

    assert list(LINES * 100) == texts([*moved, "Thanks for any hint"])[:-1]
