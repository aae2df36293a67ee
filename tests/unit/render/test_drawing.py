"""Curves, plots and time lines become one kind of drawing, and that a picture or a chart."""

from __future__ import annotations

import json

import pytest

from oomdoctor.render.charts import charts_of
from oomdoctor.render.drawing import (
    Drawing,
    curve_drawing,
    drawings_of,
    plot_drawing,
    stepped,
    thinned,
    timeline_drawing,
)
from oomdoctor.render.drawing_svg import picture_of
from oomdoctor.render.page import (
    Curve,
    CurvePoint,
    Mark,
    Plot,
    PlotPoint,
    Section,
    Series,
    Stretch,
    Timeline,
)
from oomdoctor.render.ticks import count_ticks, size_ticks

GIB = 1 << 30
HOSTILE = "</script><script>alert(1)</script> $$x$$"
TIMELINE = Timeline(
    caption="Memory over the run",
    across="seconds",
    series=(
        Series("allocated", ((0, 1 * GIB), (10, 3 * GIB), (20, 2 * GIB))),
        Series("reserved", ((0, 2 * GIB), (12, 4 * GIB))),
    ),
    phases=(Stretch("load", 0, 5), Stretch("train", 5, 20)),
    marks=(Mark(10, "peak", calm=True), Mark(12, "out of memory")),
    levels=(("the card", 5 * GIB),),
)
CURVE = Curve(
    caption="Allocated",
    points=(CurvePoint(1 * GIB, "load", 3), CurvePoint(2 * GIB, "step", 1)),
    top="2.00 GiB",
)
PLOT = Plot(
    caption="The peak",
    across="batch",
    points=(PlotPoint(4, GIB, "fit", "4: fits"), PlotPoint(8, 2 * GIB, "oom", "8: fails")),
    line=((4, GIB), (8, 2 * GIB)),
    width=9,
    height=2.2 * GIB,
    top="2.20 GiB",
    right="9",
    level=("limit", 2.0 * GIB),
    words=(("fit", "fits"), ("oom", "fails")),
)


def test_a_value_lasts_until_the_next_one() -> None:
    assert stepped(((0, 1), (2, 5), (3, 5))) == ((0, 1), (2, 1), (2, 5), (3, 5))
    assert stepped(()) == ()


def test_thinning_keeps_every_high_low_and_both_ends() -> None:
    places = tuple((float(at), float(at % 7)) for at in range(10_000))
    places = (*places[:5_000], (5_000.0, 99.0), *places[5_001:])

    kept = thinned(places, 400)

    assert len(kept) <= 404
    assert (places[0], places[-1]) == (kept[0], kept[-1])
    assert (5_000.0, 99.0) in kept
    assert list(kept) == sorted(kept)


def test_a_time_line_shows_all_of_its_parts() -> None:
    drawn = timeline_drawing(TIMELINE)
    picture = picture_of(drawn)

    assert (drawn.left, drawn.right) == (0, 20)
    assert drawn.top > 5 * GIB
    assert [one.name for one in picture.lines] == ["allocated", "reserved"]
    assert [bool(one.area) for one in picture.lines] == [True, False]
    assert [(one.name, one.at, one.width) for one in picture.stripes] == [
        ("load", 0.0, 25.0),
        ("train", 25.0, 75.0),
    ]
    assert [(one.name, one.at, one.calm) for one in picture.moments] == [
        ("peak", 50.0, True),
        ("out of memory", 60.0, False),
    ]


def test_the_names_of_near_moments_stand_below_one_another() -> None:
    assert [one.row for one in timeline_drawing(TIMELINE).moments] == [0, 1]


def test_a_curve_lasts_as_many_steps_as_its_points_stand_for() -> None:
    drawn = curve_drawing(CURVE)

    assert drawn.right == 4
    assert drawn.paths[0].places == ((0, GIB), (3, GIB), (3, 2 * GIB), (4, 2 * GIB))


def test_stretches_of_one_name_are_joined_and_very_many_thinned() -> None:
    steps = tuple(Stretch("step", at, at + 1) for at in range(1_000))
    changing = tuple(Stretch(f"step {at}", at, at + 0.5 + (at % 10) / 20) for at in range(1_000))
    line = (Series("allocated", ((0, 1.0), (1_000, 2.0))),)

    joined = timeline_drawing(Timeline(caption="", across="", series=line, phases=steps))
    thin = timeline_drawing(Timeline(caption="", across="", series=line, phases=changing))

    assert [(one.name, one.start, one.end) for one in joined.bands] == [("step", 0, 1_000)]
    assert 0 < len(thin.bands) <= 200
    assert min(one.end - one.start for one in thin.bands) > 0.5


def test_a_section_has_a_drawing_for_each_picture_that_has_points() -> None:
    empty = Timeline(caption="", across="", series=(Series("none", ()),))

    assert len(drawings_of(Section(title="", curve=CURVE, plot=PLOT, timeline=TIMELINE))) == 3
    assert drawings_of(Section(title="", timeline=empty)) == ()


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        (5.5 * GIB, ["0 GiB", "2 GiB", "4 GiB"]),
        (100.0, ["0 B", "20 B", "40 B", "60 B", "80 B", "100 B"]),
        (0.0, ["0 B"]),
    ],
)
def test_sizes_along_an_axis_are_round(top: float, expected: list[str]) -> None:
    assert expected == [name for _, name in size_ticks(top)]


def test_counts_along_an_axis_are_round_wherever_it_begins() -> None:
    assert [name for _, name in count_ticks(12_345, 13_600, 4)] == ["12,500", "13,000", "13,500"]
    assert list(count_ticks(3.0, 3.0)) == [(3.0, "3")]


def drawn_charts(drawing: Drawing) -> tuple[str, str]:
    pytest.importorskip("bokeh", reason="the charts' library (extra `report`) is not installed")
    charts = charts_of({"chart-1": drawing})
    assert charts is not None
    return charts.library, charts.items


def test_without_the_library_there_are_no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "bokeh", None)
    monkeypatch.setitem(sys.modules, "bokeh.embed", None)

    assert charts_of({"chart-1": timeline_drawing(TIMELINE)}) is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_chart_cannot_end_the_script_that_holds_it() -> None:
    hostile = Timeline(
        caption=HOSTILE,
        across=HOSTILE,
        series=(Series(HOSTILE, TIMELINE.series[0].points),),
        phases=(Stretch(HOSTILE, 0, 20),),
        marks=(Mark(10, HOSTILE),),
        levels=((HOSTILE, GIB),),
    )

    library, items = drawn_charts(timeline_drawing(hostile))

    assert "<" not in items
    assert "</script" not in library
    assert "alert(1)" in json.dumps(json.loads(items))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_words_of_a_chart_are_never_set_as_formulas() -> None:
    hostile = Timeline(
        caption="",
        across=HOSTILE,
        series=TIMELINE.series,
        phases=(Stretch(HOSTILE, 0, 20),),
        marks=(Mark(10, HOSTILE),),
        levels=((HOSTILE, GIB),),
    )

    _, items = drawn_charts(timeline_drawing(hostile))

    plain = [one for one in _objects(json.loads(items)) if one.get("name") == "PlainText"]
    assert sum("$$x$$" in one["attributes"]["text"] for one in plain) == 4
    # a text that is no PlainText may hold such signs only where nothing is set: in columns of data
    labels = [one for one in _objects(json.loads(items)) if one.get("name") == "Label"]
    assert all(isinstance(one["attributes"]["text"], dict) for one in labels)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_each_kind_of_drawing_becomes_a_chart() -> None:
    for drawing in (timeline_drawing(TIMELINE), curve_drawing(CURVE), plot_drawing(PLOT)):
        names = {one.get("name") for one in _objects(json.loads(drawn_charts(drawing)[1]))}

        assert {"Figure", "HoverTool", "BoxZoomTool", "WheelZoomTool", "ResetTool"} <= names


def _objects(value: object) -> list[dict[str, object]]:
    if isinstance(value, dict):
        return [value, *(one for held in value.values() for one in _objects(held))]
    if isinstance(value, list):
        return [one for held in value for one in _objects(held)]
    return []
