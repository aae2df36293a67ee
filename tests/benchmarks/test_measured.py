"""Records that others measured: what they say, and what the page about accuracy makes of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

import pytest

from benchmarks import measured
from benchmarks.accuracy import stored
from benchmarks.accuracy_bands import band_of, spreads
from benchmarks.accuracy_page import PAGE, pieces
from benchmarks.accuracy_summary import broken, error_of, summary
from benchmarks.naive import naive
from benchmarks.predictions import card_of
from benchmarks.room import stored as rooms
from oomdoctor.lab.protocol import decode, encode
from oomdoctor.memory import bands
from oomdoctor.model.job import Job

if TYPE_CHECKING:
    from benchmarks.measured import Record

RECORDS = measured.records()
TWINS = measured.FOLDER.parent.parent / "benchmarks" / "twins"


def named(name: str) -> Record:
    return next(one for one in RECORDS if one.id == name)


def test_there_are_enough_records_of_enough_sources() -> None:
    full = [one for one in RECORDS if one.quality == "full"]
    assert len(full) >= 90
    assert len({one.source for one in full}) >= 6
    assert len(measured.aside()) <= 0.3 * (len(full) + len(measured.aside()))


def test_names_are_given_once_and_nothing_is_both_a_record_and_set_aside() -> None:
    counts = Counter(one.id for one in RECORDS) + Counter(one.record for one in RECORDS)
    assert [name for name, count in counts.items() if count > 1] == []
    assert {one.record for one in RECORDS} & set(measured.aside()) == set()


@pytest.mark.parametrize("record", RECORDS, ids=lambda one: one.id)
def test_a_record_is_well_formed(record: Record) -> None:
    assert record.quantity in measured.QUANTITIES
    assert record.point in measured.POINTS
    assert record.outcome in measured.OUTCOMES
    assert (record.value is None) == (record.quantity == measured.OUTCOME)
    assert record.comparable or record.why
    assert record.job is not None or record.twin is not None
    assert card_of(record).total_bytes > 0


@pytest.mark.parametrize(
    "record", [one for one in RECORDS if one.value is not None], ids=lambda one: one.id
)
def test_bytes_are_those_that_were_printed(record: Record) -> None:
    number, unit = str(record.printed).split()
    scale = {"bytes": 1, "MiB": 1 << 20, "GiB": 1 << 30, "GB": 10**9}[unit]
    assert record.value == round(float(number) * scale)
    last = 10 ** -len(number.partition(".")[2])
    assert record.rounding == (0 if unit == "bytes" else int(scale * last / 2))


@pytest.mark.parametrize(
    "record", [one for one in RECORDS if one.job is not None], ids=lambda one: one.id
)
def test_a_job_says_the_same_after_it_was_sent(record: Record) -> None:
    assert record.job == decode(Job, encode(record.job))


def test_a_twin_stands_in_its_file() -> None:
    for record in RECORDS:
        if record.twin is not None:
            name, function = record.twin.entry.split(":")
            assert f"def {function}(" in (TWINS / f"{name}.py").read_text()


def test_an_error_within_the_rounding_of_print_is_none() -> None:
    record = named("litgpt-lora-phi-1_5-b1")
    assert error_of(record, 4_824_000_000) == 0.0
    assert error_of(record, 4_820_000_000 * 1.1) == pytest.approx(0.1)
    assert error_of(dataclasses.replace(record, value=None), 1.0) is None


def test_rules_of_thumb_are_computed_as_stated() -> None:
    job = named("litgpt-lora-phi-1_5-b1").job
    assert job is not None
    said = {name: round(value / 1e9, 2) for name, value in naive(job).items()}
    assert said == {"x4": 11.34, "2sbhl": 3.05, "6sbhl": 3.46, "34sbh": 4.59, "megatron": 5.23}


def test_bounds_are_found_broken() -> None:
    record = named("litgpt-lora-phi-1_5-b1")
    low = {record.id: {"simulation": {"bytes": 4_000_000_000, "verdict": "oom"}}}
    faults = broken(summary([record], low))
    assert faults[0] == "simulation: median 17.01% of at most 3%"
    assert "simulation: too low 100.00% of at most 3%" in faults
    assert "verdicts right: 0% of at least 90%" in faults


def test_what_was_stored_keeps_the_bounds() -> None:
    results = stored()
    shown = {one.id: results.get(one.id, {}) for one in RECORDS}
    assert broken(summary(RECORDS, shown)) == []


@pytest.mark.parametrize(
    ("engine", "band"), [("simulation", bands.SIMULATION), ("formula", bands.FORMULA)]
)
def test_bands_cover_the_errors_of_the_records(engine: str, band: bands.Band) -> None:
    results = stored()
    shown = {one.id: results.get(one.id, {}) for one in RECORDS}
    found = band_of(spreads(RECORDS, shown)[engine])
    assert (band.up, band.down) == (found.up, found.down)
    assert band.off >= found.off
    assert max(band.up, band.down) <= bands.WIDEST


def test_fragments_are_those_of_simulated_jobs() -> None:
    shares = [one["reserved"] / one["allocated"] for one in rooms().values()]
    assert len(shares) == 56
    assert round(median(shares), 2) == bands.FRAGMENTED


def test_the_band_of_the_formula_covers_the_least_room_of_simulated_jobs() -> None:
    most = bands.FRAGMENTED * (1 + bands.FORMULA.up)
    covered = [one["least"] <= one["formula"] * most for one in rooms().values()]
    assert sum(covered) >= 0.95 * len(covered)


def test_the_page_shows_what_was_stored() -> None:
    text = PAGE.read_text()
    for name, lines in pieces(RECORDS, stored()).items():
        assert f"<!-- {name} -->\n{lines}\n<!-- end of {name} -->" in text


def test_the_page_explains_each_outlier() -> None:
    text = PAGE.read_text()
    explained = text.partition("## Outliers")[2]
    results = stored()
    for record in RECORDS:
        said = results.get(record.id, {}).get("simulation", {})
        off = error_of(record, said.get("bytes"))
        if off is not None and abs(off) > 0.05:
            assert record.id in explained
