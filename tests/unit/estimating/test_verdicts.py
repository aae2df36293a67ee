"""Verdicts on cards, limits, rates and tables."""

from __future__ import annotations

import pytest

from oomdoctor.estimating.limits import largest, limits, rates
from oomdoctor.estimating.peak import Peak, bare_peak
from oomdoctor.estimating.shapes import Shape
from oomdoctor.estimating.simulation import Simulation
from oomdoctor.estimating.table import axes, table
from oomdoctor.estimating.verdicts import least_room, verdicts, word_for
from oomdoctor.memory.bands import FRAGMENTED, Band
from oomdoctor.memory.outside import Outside, outside
from oomdoctor.memory.stream import Allocation, Stream
from oomdoctor.memory.stream_replay import replay
from oomdoctor.model.job import ShardingSpec
from tests.unit.estimating.doubles import GIB, Double, a_card, a_job, stream_of

BESIDE = Outside(int(0.3 * GIB), int(0.86 * GIB), "context")
CARD = a_card(24 * GIB)
BAND = Band(off=0.1, up=0.08, down=0.08)


def simulated(**values: object) -> Peak:
    return Simulation(Double(), CARD).peak(a_job(**values))


def by_formula(need: int) -> Peak:
    """Return a peak for which so much must be reserved."""
    allocated = int(need / FRAGMENTED)
    return Peak(engine="formula", allocated=allocated, reserved=None, phase="step 2", band=BAND)


@pytest.mark.parametrize(
    ("share", "word"), [(0.5, "fits"), (0.84, "fits"), (0.97, "tight"), (1.15, "oom")]
)
def test_a_formula_leaves_a_band_between_fits_and_oom(share: float, word: str) -> None:
    room = 80 * GIB - (BESIDE.low + BESIDE.high) // 2
    assert word_for(by_formula(int(room * share)), 80 * GIB, BESIDE) == word


@pytest.mark.parametrize("size", [6, 8, 12, 16, 24, 80])
def test_nothing_fits_whose_widest_need_is_larger_than_the_card(size: int) -> None:
    card = size * GIB
    for percent in range(50, 131):
        need = card * percent // 100
        fits = word_for(by_formula(need), card, BESIDE) == "fits"
        assert fits == (need * (1 + BAND.up) + BESIDE.high <= card)


def test_a_cache_that_would_have_to_be_given_back_is_tight() -> None:
    first, larger = (
        Allocation(size, "aten.empty", "", "step 1", "") for size in (2 * GIB, 3 * GIB)
    )
    stream = Stream(
        allocations=[first, larger], events=[0, ~0, 1, ~1], marks=[], origin="test", facts={}
    )
    peak = bare_peak(stream, band=BAND)
    assert (peak.allocated, peak.needed) == (3 * GIB, 5 * GIB)
    words = [word_for(peak, size * GIB, BESIDE) for size in (3, 4, 5, 6, 7)]
    assert words == ["oom", "tight", "tight", "tight", "fits"]


def test_what_lacks_more_than_eight_percent_is_out_of_memory() -> None:
    wide = Outside(0, 8 * GIB, "much")
    words = {}
    for percent in range(70, 131):
        need = by_formula(int(20 * GIB * percent / 100))
        words[percent] = word_for(need, 24 * GIB, wide)
    tight = [percent for percent, word in words.items() if word == "tight"]
    assert max(tight) == 108


def test_a_card_with_much_room_fits_and_a_small_one_does_not() -> None:
    peak = simulated()
    words = [one.verdict for one in verdicts(peak, [a_card(80 * GIB), a_card(3 * GIB)], BESIDE)]
    assert words == ["fits", "oom"]


def test_the_failing_request_is_named_with_its_module() -> None:
    found = verdicts(simulated(), [a_card(3 * GIB)], BESIDE)[0]
    assert found.failed is not None
    assert "aten." in found.failed
    assert "step 1" in found.failed


def test_margins_are_the_band_outside_the_allocator_apart() -> None:
    peak = simulated()
    found = verdicts(peak, [a_card(80 * GIB)], BESIDE)[0]
    assert peak.reserved is not None
    assert found.margin_low_bytes == 80 * GIB - peak.reserved - BESIDE.high
    assert found.margin_high_bytes == 80 * GIB - peak.reserved - BESIDE.low


def test_the_least_room_is_what_the_allocator_gets_by_with() -> None:
    peak = simulated()
    least = least_room(peak)
    stream = stream_of(a_job())
    assert replay(stream, capacity_bytes=least).failed is None
    assert peak.allocated <= least <= peak.needed


def test_a_job_on_many_ranks_holds_more_outside() -> None:
    alone, many = outside(a_job()), outside(a_job(sharding=ShardingSpec(kind="ddp", ranks=8)))
    assert many.low > alone.low
    assert "NCCL" in many.says
    assert "NCCL" not in alone.says


def test_the_largest_number_is_found_from_any_start() -> None:
    for start in (-3, 1, 7, 136, 137, 138, 500, 5000):
        assert largest(lambda one: one <= 137, start=start, most=1000) == 137


def test_a_good_guess_needs_two_looks() -> None:
    looks: list[int] = []

    def fits(one: int) -> bool:
        looks.append(one)
        return one <= 137

    assert largest(fits, start=137, most=1000) == 137
    assert looks == [137, 138]


def test_nothing_fits_and_everything_fits() -> None:
    assert largest(lambda _: False, start=4, most=100) == 0
    assert largest(lambda _: True, start=4, most=100) == 100


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    engine = Simulation(Double(), CARD)
    job = a_job()
    found = {one.what: one for one in limits(engine, job, [CARD], BESIDE, rates(engine, job))}
    rows, length = found["batch"].largest, found["length"].largest
    assert word_for(engine.at(job, Shape(rows, 1024)), CARD.total_bytes, BESIDE) == "fits"
    assert word_for(engine.at(job, Shape(rows + 1, 1024)), CARD.total_bytes, BESIDE) != "fits"
    assert word_for(engine.at(job, Shape(2, length)), CARD.total_bytes, BESIDE) == "fits"
    assert length % 64 == 0


def test_a_length_beyond_the_model_is_not_tried() -> None:
    engine = Simulation(Double(), CARD)
    job, card = a_job(batch=1), a_card(999 * GIB)
    found = {one.what: one for one in limits(engine, job, [card], BESIDE, rates(engine, job))}
    assert (found["length"].largest, found["length"].capped) == (8192, True)


def test_rates_are_differences_of_peaks() -> None:
    engine = Simulation(Double(), CARD)
    job = a_job()
    found = rates(engine, job)
    more = replay(stream_of(a_job(batch=3))).peak_allocated
    assert found.row_bytes == more - replay(stream_of(job)).peak_allocated
    assert found.thousand_tokens_bytes is not None
    assert found.thousand_tokens_bytes == pytest.approx(found.row_bytes * 1000 / 1024, rel=0.01)


def test_a_table_traces_few_cells_and_checks_one() -> None:
    double = Double()
    engine = Simulation(double, CARD)
    batches, lengths = axes(a_job())
    made = table(engine, a_job(), [CARD], BESIDE, batches=batches, lengths=lengths)
    cells = [one for row in made.rows for one in row]
    assert len(cells) == len(batches) * len(lengths)
    assert sum(one.traced for one in cells) == 2
    assert len(double.requests) == 5
    assert made.error is not None
    assert made.error < 1e-3
    for one in (cells[0], cells[-1], cells[len(cells) // 2]):
        real = replay(stream_of(a_job(batch=one.batch, seq_len=one.seq_len)))
        assert one.allocated_bytes == pytest.approx(real.peak_allocated, rel=1e-3)


def test_the_axes_hold_the_job_and_stop_at_the_model() -> None:
    batches, lengths = axes(a_job(batch=3, seq_len=3000))
    assert 3 in batches
    assert 3000 in lengths
    assert max(lengths) <= 8192
    assert (len(batches), len(lengths)) == (8, 7)


def test_axes_may_be_given() -> None:
    assert axes(a_job(), batches=(5,), lengths=(100, 200)) == ((5,), (100, 200))
