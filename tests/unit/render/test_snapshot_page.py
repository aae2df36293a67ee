"""The page of a snapshot answers first: who leaks, why a request failed, who held the memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from oomdoctor.memory.allocator_oom import OutOfMemoryError
from oomdoctor.render.html import page_html
from oomdoctor.render.layout import plain
from oomdoctor.render.page_markdown import page_markdown
from oomdoctor.render.page_text import page_lines
from oomdoctor.render.snapshot_json import report_json
from oomdoctor.render.snapshot_page import snapshot_page
from oomdoctor.render.theme import Theme
from oomdoctor.snapshot.report import SnapshotReport, report_on
from oomdoctor.snapshot.shapes import snapshot_of
from tests.unit.render.reading_html import read_html
from tests.unit.snapshot.planted import (
    LEAK,
    MIB,
    SETUP,
    Recorded,
    layer,
    leak,
    train,
)

if TYPE_CHECKING:
    from pathlib import Path

WIDE = Theme(width=150, colour=False, unicode=True)


def shown(report: SnapshotReport) -> str:
    return plain(page_lines(snapshot_page(report, "a.pickle"), WIDE))


def reported(plain_snapshot: dict[str, Any]) -> SnapshotReport:
    return report_on(snapshot_of(plain_snapshot))


def scattered() -> Recorded:
    """Leave small blocks in two large segments, so that half of the card is of no use."""
    run = Recorded(capacity=220 * MIB)
    large = run.alloc(100 * MIB, layer()), run.alloc(100 * MIB, layer())
    run.free(*large)
    for _ in range(2):
        filler = run.alloc(90 * MIB, layer())
        run.alloc(5 * MIB, LEAK)
        run.free(filler)
    with pytest.raises(OutOfMemoryError):
        run.alloc(150 * MIB, SETUP)
    return run


@pytest.fixture(scope="module")
def leaking() -> SnapshotReport:
    """A run that keeps 8 MiB in every step."""
    return reported(train(Recorded(), extra=leak(8 * MIB)).snapshot())


def test_the_line_that_leaks_is_the_answer(leaking: SnapshotReport) -> None:
    text = shown(leaking)

    assert text.startswith(
        "a.pickle\n  /home/me/train.py:22 in main keeps 8.00 MiB more in every step"
    )
    assert "What grows\n  Steps are told by the loop at /home/me/train.py:20." in text


def test_lines_of_the_forward_pass_that_grow_together_hint_at_a_kept_graph() -> None:
    def keep(run: Recorded, _: int) -> None:
        for line in (50, 51, 52):
            run.alloc(4 * MIB, layer(line))

    text = " ".join(shown(reported(train(Recorded(), extra=keep).snapshot())).split())

    assert "Together 3 lines keep 12.00 MiB more in every step." in text
    assert "as they do when the graph of every step is kept" in text


def test_two_lines_outside_of_the_model_hint_at_no_graph() -> None:
    def keep(run: Recorded, _: int) -> None:
        run.alloc(MIB, LEAK)
        run.alloc(MIB, (("/home/me/train.py", 23, "main"), *LEAK[1:]))

    text = shown(reported(train(Recorded(), extra=keep).snapshot()))

    assert "Together 2 lines keep 2.00 MiB more in every step." in text
    assert "graph of every step" not in text


def test_without_growth_it_is_said_what_was_looked_at() -> None:
    text = shown(reported(train(Recorded()).snapshot()))

    assert "No line keeps more and more: 39 passes were looked at" in text
    assert "What grows" not in text


def test_a_failed_request_is_explained() -> None:
    text = shown(reported(scattered().snapshot()))

    assert "A request for 150.00 MiB failed although 210.00 MiB was free: fragmentation." in text
    assert "runs to the end of the recording" in text
    assert "The request could have had 1 hole, the largest of 90.00 MiB." in text
    assert (
        "90.00 MiB  100.00 MiB             2      5.00 MiB            9  /home/me/train.py:22"
        in text
    )


def test_a_full_card_is_told_as_one() -> None:
    run = Recorded(capacity=200 * MIB)
    for _ in range(10):
        run.alloc(20 * MIB, LEAK)
    with pytest.raises(OutOfMemoryError):
        run.alloc(MIB, SETUP)

    text = shown(reported(run.snapshot()))

    assert "A request for 1.00 MiB failed: no more than 0 B was free in all" in text
    assert "fails at the same request" in text


def test_where_a_leak_ended_the_run_settings_are_no_cure() -> None:
    run = train(Recorded(capacity=4000 * MIB), steps=400, extra=leak(37 * MIB))

    text = shown(reported(run.snapshot()))

    assert "/home/me/train.py:22 in main keeps 37.00 MiB more in every step" in text
    assert "Other settings only put off the end." in " ".join(text.split())


def test_a_snapshot_of_nothing_is_told_as_one() -> None:
    report = reported({"segments": [], "device_traces": []})

    assert "nothing was on any card" in shown(report)
    assert json.loads(report_json(report))["devices"] == []


def test_segments_without_a_trace_still_show_who_holds_them() -> None:
    made = train(Recorded(), steps=2).snapshot()

    text = shown(reported({"segments": made["segments"], "device_traces": []}))

    assert "The snapshot has no trace, so growth cannot be told." in text
    assert "/home/me/train.py:10 in main" in text


def test_every_device_has_its_own_part() -> None:
    one = train(Recorded(), steps=2).snapshot()
    two = train(Recorded(device=1), steps=2).snapshot()
    both = {
        "segments": one["segments"] + two["segments"],
        "device_traces": [one["device_traces"][0], two["device_traces"][1]],
    }

    text = shown(reported(both))

    assert "GPU 0: What was free" in text
    assert "GPU 1: What was free" in text


def test_frames_are_shown_as_text_in_html_and_markdown() -> None:
    frames = (("/home/me/<script>alert(1)</script>.py", 3, "<b>"),)

    def keep(run: Recorded, _: int) -> None:
        run.alloc(MIB, frames)

    made = train(Recorded(), steps=8, extra=keep).snapshot()
    page = snapshot_page(reported(made), "<i>a</i>")

    html = page_html(page, still=True)
    found = read_html(html)
    assert len(found.scripts) == 1
    assert "<i>a</i>" in found.text
    assert "<script>alert" in found.text
    assert "://" not in html
    assert "<script>alert" not in page_markdown(page)


def test_json_follows_its_schema(root: Path, leaking: SnapshotReport) -> None:
    schema = json.loads((root / "docs" / "snapshot.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)

    for report in (leaking, reported(scattered().snapshot())):
        validator.validate(json.loads(report_json(report)))
    (device,) = json.loads(report_json(leaking))["devices"]
    assert device["leak_suspects"][0]["site"]["frame"] == {
        "file": "/home/me/train.py",
        "line": 22,
        "name": "main",
    }
