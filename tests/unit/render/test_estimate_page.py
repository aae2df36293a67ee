"""An estimate in all formats: pages of text, Markdown and HTML, and JSON with its schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsonschema
import pytest

from oomdoctor.estimating.estimate import Wanted, compared, estimate
from oomdoctor.estimating.simulation import Simulation
from oomdoctor.model.estimate import Estimate, FitPlan, PlanStep
from oomdoctor.record import replace
from oomdoctor.render.estimate_json import as_dict, plan_dict, to_json
from oomdoctor.render.estimate_page import estimate_page
from oomdoctor.render.html import page_html
from oomdoctor.render.layout import plain
from oomdoctor.render.page_markdown import page_markdown
from oomdoctor.render.page_text import page_lines
from oomdoctor.render.plan_page import flags, plan_page
from oomdoctor.render.text import paint
from oomdoctor.render.theme import Theme
from tests.unit.estimating.doubles import GIB, Double, a_card, a_job
from tests.unit.render.reading_html import read_html

if TYPE_CHECKING:
    from pathlib import Path

CARDS = (a_card(6 * GIB, "small card"), a_card(24 * GIB, "large card"))


@pytest.fixture(scope="module")
def made() -> Estimate:
    engine = Simulation(Double(), CARDS[0])
    wanted = Wanted(
        cards=CARDS,
        alloc_confs=("expandable_segments:True",),
        with_table=True,
        batches=(1, 2, 8),
        lengths=(512, 1024, 4096),
    )
    found = estimate(a_job(), engine, wanted, assumptions=("something",))
    other = compared("batch=4", a_job(batch=4), engine, wanted)
    return replace(found, variants=(other,))


def text(page_of: Estimate, **theme: object) -> str:
    return plain(page_lines(estimate_page(page_of), Theme(**theme)))


def test_the_peak_and_the_cards_come_first(made: Estimate) -> None:
    shown = text(made)
    assert shown.startswith("made/tiny: ")
    titles = [
        *("Cards", "What the peak is made of", "Largest owners at the peak", "Phases"),
        *("How far it goes", "Batch and length", "What if", "Settings of the allocator", "Notes"),
    ]
    places = [shown.index(f"\n{title}\n") for title in titles]
    assert places == sorted(places)


def test_no_line_is_wider_than_the_page(made: Estimate) -> None:
    for width in (60, 80, 100, 140):
        assert max(map(len, text(made, width=width).split("\n"))) <= width


def test_a_comparison_without_reserved_bytes_has_no_column_for_them(made: Estimate) -> None:
    bare = replace(made, peak_reserved_bytes=None)
    bare = replace(
        bare, variants=tuple(replace(v, peak_reserved_bytes=None) for v in made.variants)
    )
    rows = text(bare).partition("\nWhat if\n")[2].split("\n")

    assert rows[0].split() == ["changed", "allocated", "difference", "verdicts"]
    assert "GiB" in rows[2]


def test_ascii_is_enough_for_the_page(made: Estimate) -> None:
    assert text(made, unicode=False).isascii()


def test_the_heat_map_tells_verdicts_by_sign_and_by_colour(made: Estimate) -> None:
    shown = text(made)
    rows = shown[shown.index("\nBatch and length\n") :].split("\n")
    assert any("✖" in row for row in rows)
    painted = paint(page_lines(estimate_page(made), Theme(colour=True)), Theme(colour=True))
    assert "\x1b[1;31m" in painted
    assert "\x1b[1;32m" in painted


def test_the_time_line_is_drawn_as_blocks_with_its_phases(made: Estimate) -> None:
    shown = text(made)
    drawn = shown[shown.index("\nPhases\n") : shown.index("\nHow far it goes\n")]
    assert "█" in drawn
    assert "step 2, forward" in drawn or "step 2" in drawn


def test_a_brief_page_is_the_answer_alone(made: Estimate) -> None:
    lines = page_lines(estimate_page(made), Theme(), brief=True)
    assert "Cards" not in plain(lines)


def test_the_page_says_which_engine_spoke_and_why(made: Estimate) -> None:
    assert "Made by hand." in text(made)
    fallen = replace(made, engine="formula", fallback="torch is not installed")
    assert "Computed by formula" in text(fallen)
    assert "torch is not installed" in text(fallen)


def test_markdown_has_tables_for_cards_and_heat(made: Estimate) -> None:
    shown = page_markdown(estimate_page(made))
    assert "| small card |" in shown
    assert "tokens | 512 | 1,024 | 4,096 |" in shown
    assert shown.count("```") % 2 == 0


def test_html_holds_all_it_shows(made: Estimate) -> None:
    found = read_html(page_html(estimate_page(made), still=True))

    assert len(found.all("svg")) > 3
    assert "curve-line c0" in [attributes.get("class") for attributes in found.all("path")]
    assert "heat" in [attributes.get("class") for attributes in found.all("table")]
    assert "out of memory" in found.text


def test_html_escapes_names(made: Estimate) -> None:
    hostile = replace(made, verdicts=(replace(made.verdicts[0], card="<script>x</script>"),))

    found = read_html(page_html(estimate_page(hostile), still=True))

    assert len(found.scripts) == 1
    assert "<script>x</script>" in found.text


def test_json_obeys_its_schema(made: Estimate, root: Path) -> None:
    schema = json.loads((root / "docs" / "estimate.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(to_json(made)))


def test_the_schema_names_every_key(made: Estimate, root: Path) -> None:
    schema = json.loads((root / "docs" / "estimate.schema.json").read_text(encoding="utf-8"))
    assert sorted(schema["properties"]) == sorted(as_dict(made))
    assert sorted(schema["required"]) == sorted(as_dict(made))


def test_json_has_whole_bytes_and_sorted_keys(made: Estimate) -> None:
    values = json.loads(to_json(made))
    assert list(values) == sorted(values)
    assert isinstance(values["peak_allocated_bytes"], int)
    assert values["outside_allocator_bytes"]["low"] < values["outside_allocator_bytes"]["high"]
    assert sum(one["bytes"] for one in values["parts"]) == values["peak_allocated_bytes"]


def a_plan(made: Estimate, count: int = 2) -> FitPlan:
    settings = {"method": "lora", "lora-r": "16", "dtype": "bf16", "batch": "2", "grad-accum": "8"}
    steps = tuple(
        PlanStep(
            settings={**settings, "checkpointing": "true"},
            peak_allocated_bytes=GIB,
            peak_reserved_bytes=2 * GIB,
            verdict=made.verdicts[1],
            quality=float(number),
            time_factor=1.33,
            engine="simulate" if number == 0 else "formula",
            notes=("an adapter",),
        )
        for number in range(count)
    )
    return FitPlan(
        card="large card", capacity_bytes=24 * GIB, steps=steps, tried=40, least_bytes=3 * GIB
    )


def test_a_plan_shows_its_settings_as_flags(made: Estimate) -> None:
    shown = plain(page_lines(plan_page(a_plan(made)), Theme(width=140)))
    words = "--method lora --lora-r 16 --dtype bf16 --batch 2 --grad-accum 8 --checkpointing"
    assert words in shown
    assert "lora, rank 16, own targets, bf16" in shown
    assert "simulation" in shown
    assert "formula" in shown


def test_a_plan_without_a_way_says_what_the_smallest_needs(made: Estimate) -> None:
    shown = plain(page_lines(plan_page(a_plan(made, 0)), Theme()))
    assert "nothing fits" in shown
    assert "3.00 GiB" in shown


def test_a_plan_as_json_says_who_judged_each_step(made: Estimate) -> None:
    steps = plan_dict(a_plan(made))["steps"]
    assert isinstance(steps, list)
    assert [one["engine"] for one in steps] == ["simulate", "formula"]


def test_switches_are_flags_of_their_own() -> None:
    assert flags({"checkpointing": "false", "batch": "1"}) == "--no-checkpointing --batch 1"
