"""The settings that fit a model on a card: what is tried, what is chosen, who judges it."""

from __future__ import annotations

import pytest

from oomdoctor.errors import UsageError
from oomdoctor.estimating.choice import Engines
from oomdoctor.estimating.describe import Source, source_of
from oomdoctor.estimating.flags import facts_of
from oomdoctor.estimating.plan import MOST_TRACES, plan
from oomdoctor.estimating.plan_space import candidates, choices
from tests.unit.estimating.doubles import GIB, Double, a_card

FLAGS = {"model": "Qwen/Qwen2.5-0.5B", "seq": 512}


def a_source(**flags: object) -> Source:
    given = {**FLAGS, **flags}
    return source_of([], given=facts_of(given), flags=tuple(given))


def test_every_candidate_has_the_same_rows_in_a_step() -> None:
    found = candidates(a_source(), a_card(24 * GIB), {})
    assert {one.job.batch * one.job.grad_accum for one in found} == {16}
    assert {one.job.batch for one in found} == {1, 2, 4, 8, 16}
    assert {one.job.checkpointing for one in found} == {None, "non-reentrant"}


def test_a_batch_that_is_given_with_micro_steps_sets_the_rows() -> None:
    found = candidates(a_source(**{"grad-accum": 6}), a_card(24 * GIB), {"grad-accum": "6"})
    assert {(one.job.batch, one.job.grad_accum) for one in found} == {
        (1, 6),
        (2, 3),
        (3, 2),
        (6, 1),
    }


def test_what_is_settled_is_not_varied() -> None:
    fixed = {"method": "lora", "batch": "2", "checkpointing": "true", "lora-r": "4"}
    found = candidates(
        a_source(method="lora", batch=2, checkpointing=True, **{"lora-r": 4}),
        a_card(24 * GIB),
        fixed,
    )
    assert {one.job.lora.rank for one in found if one.job.lora} == {4}
    assert {one.job.batch for one in found} == {2}
    assert all(one.job.checkpointing for one in found)
    assert len(found) == 2  # on all linear layers, and on PEFT's own targets


def test_a_card_without_bf16_trains_in_fp16() -> None:
    assert {one.settings["dtype"] for one in choices(half="fp16")} == {"fp32", "fp16"}
    old = a_card(16 * GIB)
    old = type(old)(name="V100", capability=(7, 0), processors=80, total_bytes=16 * GIB)
    found = candidates(a_source(), old, {})
    assert not any("bf16" in one.settings.values() for one in found)
    assert any(one.job.scaler for one in found)


def test_qualities_come_best_first_and_each_is_the_fastest_that_fits() -> None:
    made = plan(a_source(), a_card(24 * GIB), Engines("formula"), fixed={})
    assert [one.quality for one in made.steps] == sorted(one.quality for one in made.steps)
    assert made.steps[0].settings["method"] == "full"
    assert made.steps[0].settings["checkpointing"] == "false"
    assert all(one.verdict.verdict == "fits" for one in made.steps)
    assert {one.engine for one in made.steps} == {"formula"}


def test_a_smaller_card_gets_smaller_passes() -> None:
    large = plan(a_source(), a_card(80 * GIB), Engines("formula"), fixed={})
    small = plan(a_source(), a_card(14 * GIB), Engines("formula"), fixed={})
    first = next(one for one in large.steps if one.quality == small.steps[0].quality)
    assert int(small.steps[0].settings["batch"]) < int(first.settings["batch"])


def test_chosen_settings_are_simulated() -> None:
    double = Double()
    made = plan(a_source(), a_card(24 * GIB), Engines(None, tracer=double), fixed={})
    assert {one.engine for one in made.steps} == {"simulate"}
    assert len(double.requests) <= MOST_TRACES
    assert made.fallback is None


def test_a_setting_that_the_simulation_refuses_is_not_chosen() -> None:
    """The double holds far more than the formula thinks, so that nothing fits."""
    double = Double()
    made = plan(a_source(seq=4096), a_card(9 * GIB), Engines(None, tracer=double), fixed={})
    assert all(one.verdict.verdict == "fits" for one in made.steps if one.engine == "simulate")
    assert double.requests


def test_nothing_fits_on_a_card_that_is_too_small() -> None:
    made = plan(a_source(), a_card(GIB), Engines("formula"), fixed={})
    assert made.steps == ()
    assert made.least_bytes is not None
    assert made.least_bytes > GIB


def test_generation_has_no_plan() -> None:
    with pytest.raises(UsageError, match="a plan is for training"):
        candidates(a_source(task="generation"), a_card(24 * GIB), {})
