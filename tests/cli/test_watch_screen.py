"""The live screen of `oomdoctor watch`, read off a real pseudo-terminal."""

from __future__ import annotations

import json
import os
import re
import shutil
from datetime import datetime
from pathlib import Path

import pytest

from tests.cli.terminal import on_terminal

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "fixtures" / "watch"
PAGE = ROOT / "docs" / "watch.md"
NAME = "evaluation-outputs"
STEPS = 300

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")


def running(folder: Path, name: str = NAME, steps: int = STEPS) -> Path:
    """Put a recorded run there as it was after so many steps; this test is its recorder."""
    made = folder / name
    shutil.copytree(RECORDED / name, made)
    run = json.loads((made / "run.json").read_text(encoding="utf-8"))
    del run["ended"]
    (made / "run.json").write_text(json.dumps({**run, "recorder": {"pid": os.getpid()}}))
    (events,) = made.glob("processes/*/events.jsonl")
    lines = events.read_text(encoding="utf-8").splitlines(keepends=True)
    numbers = [json.loads(line).get("number") or 0 for line in lines]
    known = lines[: next(at for at, number in enumerate(numbers) if number > steps)]
    events.write_text("".join(known), encoding="utf-8")
    started = datetime.fromisoformat(run["started"]).timestamp()
    until = json.loads(known[-1])["t"] - started
    samples = (made / "samples.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in samples if json.loads(line)["t"] <= until]
    (made / "samples.jsonl").write_text("".join(kept), encoding="utf-8")
    return made


def test_the_screen_tells_verdict_forecast_processes_and_phases(tmp_path: Path) -> None:
    made = running(tmp_path)

    seen = on_terminal(["watch", str(made), "--for", "1s", "--every", "0.2s"], tmp_path)

    live = " ".join(seen.screens[-1].split())
    assert "device leak: process python" in live
    forecast = r"The card is full at step about [\d,]+ \([\d,]+ to [\d,]+\), in \d+ (min|s)"
    assert re.search(forecast, live)
    assert re.search(r"\d+ python 2\d\d (evaluation|train step)", live)
    assert "Peaks by phase" in live
    assert "Ctrl-C ends the watch, not what is watched" in live


def test_the_screen_goes_when_the_watch_ends_and_the_page_stays(tmp_path: Path) -> None:
    made = running(tmp_path)

    seen = on_terminal(["watch", str(made), "--for", "1s", "--every", "0.2s"], tmp_path)

    assert (seen.left, seen.hides_cursor, seen.exit_code) == ("", False, 0)
    assert "device leak: process python" in seen.result
    assert "\x1b" not in seen.result


def test_a_small_terminal_gets_what_fits(tmp_path: Path) -> None:
    made = running(tmp_path)

    seen = on_terminal(
        ["watch", str(made), "--for", "1s", "--every", "0.2s"], tmp_path, rows=12, columns=60
    )

    assert "device leak" in seen.screens[-1]
    assert len(seen.screens[-1].splitlines()) <= 12


def test_without_colour_the_words_are_the_same(tmp_path: Path) -> None:
    made = running(tmp_path)
    call = ["watch", str(made), "--for", "1s", "--every", "0.2s"]

    plain = on_terminal([*call, "--color", "never"], tmp_path)
    colour = on_terminal([*call, "--color", "always"], tmp_path)

    assert plain.screens[-1] == colour.screens[-1]


def test_the_screen_of_the_docs_is_what_a_terminal_shows(tmp_path: Path) -> None:
    made = running(tmp_path)

    seen = on_terminal(["watch", str(made), "--for", "1s", "--every", "0.2s"], tmp_path)

    block = re.search(r"(?ms)^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))
    assert block is not None
    assert block[1].rstrip("\n") == seen.screens[-1]
