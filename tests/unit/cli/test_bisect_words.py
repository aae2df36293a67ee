"""Axes and commands as they are typed, and the table of trials on a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import click
import pytest
from rich.console import Console

from oomdoctor.cli.bisect_axes import axes_of
from oomdoctor.cli.bisect_command import template_of
from oomdoctor.cli.bisect_live import _LiveTable
from oomdoctor.lab.keys import key_of
from oomdoctor.model.trial import FIT, TrialResult, TrialSpec

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("batch", (1, 512, 1)),
        ("batch=2..64", (2, 64, 1)),
        ("seq=512..4096:512", (512, 4096, 512)),
        ("seq=1_024..2_048", (1024, 2048, 64)),
        ("batch=8", (8, 8, 8)),
        ("gpu_memory_utilization=0.5..0.9:0.05", (0.5, 0.9, 0.05)),
        ("lora-rank", (8, 1024, 8)),
        ("anything=3..9", (3, 9, 1)),
    ],
)
def test_an_axis_is_read(text: str, expected: tuple[float, float, float]) -> None:
    (axis,) = axes_of([text])

    assert axis.name == text.partition("=")[0]
    assert (axis.low, axis.high, axis.step) == expected


@pytest.mark.parametrize("text", ["", "=1..2", "batch=", "batch=1..", "batch=1..2:", "batch=-1..2"])
def test_what_is_no_axis_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="expected NAME"):
        axes_of([text])


def test_placeholders_are_filled_and_other_braces_stay(tmp_path: Path) -> None:
    config = tmp_path / "train.yaml"
    config.write_text("rows: 1\n")
    edits = (f"{config}:rows={{batch}}", f"{config}:name=run-{{batch}}", f"{config}:rate=0.5")
    words = ("train", "--bs={batch}", '{"a": 1, "b": {batch}}', "{other}")
    template = template_of(words, edits, ["batch"])

    command = template.at({"batch": 8})

    assert command.arguments == ("train", "--bs=8", '{"a": 1, "b": 8}', "{other}")
    assert [one.value for one in command.edits] == [8, "run-8", 0.5]


@pytest.mark.parametrize("edit", ["rows={batch}", "no.yaml:rows={batch}", "train.yaml:={batch}"])
def test_an_edit_names_a_file_and_a_key(
    edit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.yaml").write_text("rows: 1\n")

    with pytest.raises(click.UsageError, match="--edit"):
        template_of(("train",), (edit,), ["batch"])


def test_the_table_shows_what_runs_and_what_came_of_it() -> None:
    table = _LiveTable()
    done, runs = TrialSpec(values={"batch": 4}), TrialSpec(values={"batch": 9})
    for spec in (done, runs):
        table.began(spec)
    table.heard(runs, "step 1\x1b[2J")
    table.ended(
        TrialResult(
            key=key_of(done),
            values=done.values,
            backend="cpu",
            outcome=FIT,
            allocated_bytes=3 << 30,
            seconds=2.0,
        ),
        replayed=False,
    )

    stream = io.StringIO()
    Console(file=stream, width=100, color_system=None).print(table._drawn())

    lines = stream.getvalue().splitlines()
    first = next(line for line in lines if "batch 4" in line)
    second = next(line for line in lines if "batch 9" in line)
    assert "fits" in first
    assert "3.00 GiB allocated" in first
    assert "step 1?[2J" in second
    assert "\x1b" not in stream.getvalue()
