"""The page of a threshold says what was proven, by whom, and what is not known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from oomdoctor.model.bisect import AxisRange, Bisected, StartCurve
from oomdoctor.model.trial import (
    CRASH,
    FIT,
    OOM,
    Bracket,
    CommandSpec,
    Curve,
    Frontier,
    OomIdentity,
    SearchAnswer,
    TrialResult,
)
from oomdoctor.record import replace
from oomdoctor.render.bisect_json import to_json
from oomdoctor.render.bisect_page import bisect_page
from oomdoctor.render.bisect_words import figures_words, outcome_words
from oomdoctor.render.drawing import plot_drawing
from oomdoctor.render.drawing_svg import picture_of
from oomdoctor.render.html import page_html
from oomdoctor.render.layout import plain
from oomdoctor.render.page_markdown import page_markdown
from oomdoctor.render.page_text import page_lines
from oomdoctor.render.theme import Theme
from tests.unit.render.reading_html import read_html

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
IDENTITY = OomIdentity(backend="cuda", exception="OutOfMemoryError", site="m.py:forward")


def trial(batch: int, outcome: str = FIT, **more: Any) -> TrialResult:
    fits = outcome == FIT
    values: dict[str, Any] = {
        "key": f"k{batch}",
        "values": {"batch": batch},
        "backend": "cuda",
        "outcome": outcome,
        "reserved_bytes": (2 + batch) * GIB if fits else None,
        "identity": IDENTITY if outcome == OOM else None,
        "seconds": 2.0,
    }
    return TrialResult(**(values | more))


CURVE = Curve(
    axis="batch",
    quantity="reserved",
    constant=2.0 * GIB,
    linear=float(GIB),
    points=((4.0, 6 * GIB), (20.0, 22 * GIB)),
)
ANSWER = SearchAnswer(
    bracket=Bracket(axis="batch", step=1, fits_at=20.0, ooms_at=21.0, fits=2, proven=True),
    safe_value=18.0,
    curve=CURVE,
    trials=(trial(4), trial(21, OOM), trial(20), trial(20)),
)
MADE = Bisected(
    backend="cuda",
    axes=(AxisRange(name="batch", low=1, high=512, step=1, memory="device"),),
    answer=ANSWER,
    command=CommandSpec(arguments=("train", "{batch}"), folder="/"),
    card="NVIDIA Test",
    limit_bytes=23 * GIB,
    start=StartCurve(curve=CURVE, engine="formula", error=0.08),
    trials=ANSWER.trials,
    seconds=9.0,
    folder=".oomdoctor/x",
)


def shown(made: Bisected, *, unicode: bool = True) -> str:
    theme = Theme(width=90, colour=False, unicode=unicode)
    return plain(page_lines(bisect_page(made), theme))


def test_the_edge_its_proof_and_its_price_come_first() -> None:
    text = shown(MADE)

    assert text.startswith("batch 20 fits, 21 does not\n")
    for part in (
        "Proven: the lower value fitted twice, the upper failed, one step apart.",
        "measured on the card",
        "batch 18 (with 5 % of the memory left free)",
        "+1.00 GiB (2 points, reserved bytes)",
        "Fitted: reserved = 2.00 GiB + 1.00 GiB x batch.",
        "1 out of memory, 9.0 s in all",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("fits_at", "ooms_at", "expected"),
    [
        (20.0, None, "Proven: the last value of the range fitted twice."),
        (None, 1.0, "Proven: the first value of the range failed."),
        (4.0, 3.0, "Proven: the value above fitted twice, the one below failed, one step apart."),
    ],
)
def test_a_proof_speaks_of_the_trials_that_there_were(
    fits_at: float | None, ooms_at: float | None, expected: str
) -> None:
    bracket = replace(ANSWER.bracket, fits_at=fits_at, ooms_at=ooms_at)
    text = shown(replace(MADE, answer=replace(ANSWER, bracket=bracket)))

    assert expected in text


def test_a_floor_stands_beside_the_curve() -> None:
    curve = replace(CURVE, floor=4.5 * GIB)
    text = shown(replace(MADE, answer=replace(ANSWER, curve=curve)))

    assert "Fitted: reserved = 2.00 GiB + 1.00 GiB x batch, and at least 4.50 GiB." in text


def test_a_curve_through_one_point_is_called_an_estimate() -> None:
    curve = replace(CURVE, points=((20.0, 22 * GIB),), estimated=True)
    text = shown(replace(MADE, answer=replace(ANSWER, curve=curve)))

    assert "Estimated, moved through what was measured: reserved" in text
    assert "+1.00 GiB (estimated, reserved bytes)" in text
    assert "Fitted" not in text


def test_what_trials_that_fit_leave_open_is_told_once() -> None:
    open_ = tuple(trial(batch, reason="nothing was measured") for batch in (4, 8))
    text = shown(replace(MADE, trials=(*open_, trial(9))))

    assert text.count("Of trials 1, 2: nothing was measured.") == 1


@pytest.mark.parametrize(("code", "expected"), [(0, "tells nothing: x"), (1, "crashed: x")])
def test_a_program_that_ended_well_is_not_said_to_have_crashed(code: int, expected: str) -> None:
    assert expected == outcome_words(trial(8, CRASH, exit_code=code, reason="x"))


def test_an_axis_that_changes_nothing_is_pointed_out() -> None:
    same = tuple(trial(batch, reserved_bytes=6 * GIB) for batch in (1, 8, 8))
    bracket = replace(ANSWER.bracket, fits_at=8.0, ooms_at=None)
    answer = replace(ANSWER, bracket=bracket, trials=same)

    text = shown(replace(MADE, answer=answer, trials=same))
    grows = shown(replace(MADE, answer=answer, trials=(trial(1), trial(8))))

    assert "The peak is the same at every batch that was tried" in text
    assert "perhaps nothing reads it" not in grows


def test_memory_of_the_host_is_not_said_to_be_that_of_a_card() -> None:
    text = shown(replace(MADE, backend="cpu", axes=(replace(MADE.axes[0], memory="host"),)))

    assert "what its processes held on the host" in text
    assert "may hold on the host" in text
    assert "tensors of the CPU" not in text


@pytest.mark.parametrize("backend", ["cpu", "simulate", "formula", "virtual"])
def test_only_a_card_is_said_to_have_measured(backend: str) -> None:
    text = shown(replace(MADE, backend=backend))

    assert "measured on the card" not in text.replace("not measured on the card", "")
    assert "not measured" in text or "no device" in text


@pytest.mark.parametrize(("backend", "shown"), [("cuda", True), ("cpu", True), ("virtual", False)])
def test_a_speed_is_told_only_where_work_takes_its_time(backend: str, shown: bool) -> None:
    words = figures_words(trial(4, backend=backend, tokens_per_second=812.4))

    assert ("812 tokens/s" in words) == shown


def test_a_run_that_ended_early_says_why_and_claims_no_proof() -> None:
    bracket = replace(ANSWER.bracket, ooms_at=40.0, proven=False)
    cut = replace(ANSWER, bracket=bracket, stopped="interrupted")
    text = shown(replace(MADE, answer=cut, stopped="interrupted"))

    assert "Ended early: interrupted. This is the best so far." in text
    assert "Not proven: the edge lies between the two." in text


def test_other_failures_and_trials_that_tell_nothing_are_shown() -> None:
    other = trial(9, OOM, identity=replace(IDENTITY, site="other.py:backward"))
    crash = trial(8, CRASH, reason="exit status 3")
    answer = replace(ANSWER, slipped=(other,), trials=(*ANSWER.trials, crash))
    text = shown(replace(MADE, answer=answer, trials=answer.trials))

    assert "batch 9: OutOfMemoryError of cuda at other.py:backward." in text
    assert "crashed: exit status 3" in text


@pytest.mark.parametrize(
    ("fits_at", "ooms_at", "expected"),
    [
        (20.0, None, "Not proven: no trial has shown where memory runs out."),
        (None, 9.0, "Not proven: no trial has shown what fits."),
        (None, None, "Not proven: no trial has told whether it fits."),
    ],
)
def test_a_run_that_ended_early_never_says_that_the_range_ends(
    fits_at: float | None, ooms_at: float | None, expected: str
) -> None:
    bracket = replace(ANSWER.bracket, fits_at=fits_at, ooms_at=ooms_at, proven=False)
    text = shown(replace(MADE, answer=replace(ANSWER, bracket=bracket, stopped="interrupted")))

    assert expected in text
    assert "range" not in text.partition("Trials")[0]


def test_the_plot_has_each_trial_at_its_place_and_the_limit() -> None:
    plot = bisect_page(MADE).sections[0].plot
    assert plot is not None

    picture = picture_of(plot_drawing(plot))

    spots = {round(spot.x * plot.width / 100): spot for spot in picture.spots}
    assert {x: spot.good for x, spot in spots.items()} == {4: True, 20: True, 21: False}
    assert spots[20].y * plot.height / 100 == pytest.approx(22 * GIB)
    assert picture.levels[0].at == pytest.approx(spots[21].y)


def test_a_plot_is_told_without_colours_and_in_ascii() -> None:
    text = shown(MADE, unicode=False)

    assert text.isascii()
    assert "o fits, at its peak, x out of memory, drawn at the limit" in text


def test_a_frontier_is_a_map_and_a_table() -> None:
    other = replace(
        ANSWER,
        bracket=replace(ANSWER.bracket, fits_at=10.0, ooms_at=11.0, inferred=("ooms_at",)),
        curve=None,
    )
    frontier = Frontier(outer="seq", inner="batch", rows=((512.0, ANSWER), (1024.0, other)))
    made = replace(MADE, answer=None, frontier=frontier)

    text = shown(made)
    plot = bisect_page(made).sections[0].plot

    assert plot is not None
    assert [name for name, _ in plot.lines] == ["seq 512"]  # the other row has no curve
    assert {one.label for one in plot.points} >= {
        "seq 512, batch 20: 22.00 GiB",
        "seq 512, batch 21: out of memory",
    }
    assert plot.caption not in text  # a terminal could not tell several lines from one another
    assert text.startswith("The largest batch for each seq\n")
    rows = [line.split() for line in text.splitlines() if line.strip().startswith("1,024")]
    assert rows[0] == ["1,024", "fits", "oom✖", "oom✖", "oom✖"]
    assert rows[1][:3] == ["1,024", "10", "11"]


def test_html_and_markdown_hold_the_picture_and_nothing_foreign() -> None:
    page = bisect_page(replace(MADE, card="<b>card</b>"))

    html = page_html(page, still=True)
    found = read_html(html)
    assert html.count("<circle") >= 3
    assert "<b>card</b>" in found.text
    assert "://" not in html
    assert "●" in page_markdown(page)


def test_json_follows_its_schema_whatever_a_trial_lacks(root: Path) -> None:
    schema = json.loads((root / "docs" / "bisect.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    nothing = replace(MADE, answer=None, trials=(), start=StartCurve(why_not="no job"))
    endless = replace(ANSWER, curve=replace(CURVE, linear=float("inf")))

    for made in (MADE, nothing):
        validator.validate(json.loads(to_json(made)))
    assert json.loads(to_json(replace(MADE, answer=endless)))["answer"]["curve"]["linear"] is None
