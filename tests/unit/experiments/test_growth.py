"""What a run holds after each step: leaks are judged by it, and nothing else is taken for one."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.experiments.catalogue import GROWING_STEPS, experiments_of
from oomdoctor.experiments.confirm import confirm
from oomdoctor.experiments.growth import per_step
from oomdoctor.model.trial import CONFIRMED, FIT, INCONCLUSIVE, OOM, REFUTED, TrialResult
from oomdoctor.search.rounds import Ask, run
from tests.unit.experiments.test_judge import FAILS, result

MIB = 1 << 20
LEAKS = tuple((100 + 4 * step) * MIB for step in range(GROWING_STEPS))
STEADY = (100 * MIB,) * GROWING_STEPS
(DETACH,) = experiments_of("loss-graph-retained")
(STATELESS,) = experiments_of("optimizer-states")


def held(bytes_held: tuple[int, ...], **more: Any) -> TrialResult:
    return result(more.pop("outcome", FIT), 8, held_bytes=bytes_held, **more)


def verdict(
    baseline: TrialResult, treated: TrialResult, control: TrialResult, experiment: Any = DETACH
) -> tuple[str, str]:
    arms = {"baseline": baseline, "treated": treated, "control": control}

    def trial(ask: Ask) -> TrialResult:
        return arms[str(ask.values["arm"])]

    made = run(confirm("c", experiment), trial)
    return made.verdict, made.reason


@pytest.mark.parametrize(
    ("bytes_held", "grows"),
    [
        (LEAKS, 4 * MIB),
        (STEADY, 0),
        ((10, 90, 90, 90, 90), 0),  # states of the first step
        ((100, 100, 900, 100, 100, 100), 0),  # one long row
        ((100_000, 100_001, 100_002, 100_003), 0),  # too little to fill anything
        ((1, 2, 3), None),
        ((), None),
    ],
)
def test_growth_is_what_is_held_more_after_each_step(
    bytes_held: tuple[int, ...], grows: int | None
) -> None:
    assert per_step([held(bytes_held)]) == grows


def test_a_leak_is_proven_by_growth_before_the_memory_is_full() -> None:
    assert verdict(held(LEAKS), held(STEADY), held(LEAKS)) == (
        CONFIRMED,
        f"it grows by 4.00 MiB a step, and with {DETACH.title} it does not",
    )


def test_a_leak_that_goes_on_refutes_its_supposed_reason_though_all_runs_fit() -> None:
    kind, reason = verdict(held(LEAKS), held(LEAKS), held(STEADY))

    assert kind == REFUTED
    assert reason.endswith("it grows as before, by 4.00 MiB a step")


@pytest.mark.parametrize(
    ("baseline", "treated", "control", "said"),
    [
        (held(STEADY), held(STEADY), held(STEADY), "does not fail here"),
        (held(LEAKS), held(STEADY), held(STEADY), "it is not stable"),
        (held(LEAKS), held(()), held(LEAKS), "is not known"),
        (held(STEADY, outcome=OOM), held(STEADY), FAILS, "does not grow from step to step"),
    ],
)
def test_growth_that_does_not_tell_the_runs_apart_proves_nothing(
    baseline: TrialResult, treated: TrialResult, control: TrialResult, said: str
) -> None:
    kind, reason = verdict(baseline, treated, control)

    assert kind == INCONCLUSIVE
    assert said in reason


def test_a_change_that_only_puts_a_leak_off_proves_nothing() -> None:
    slower = tuple(100 * MIB + (one - 100 * MIB) // 5 * 4 for one in LEAKS)

    kind, reason = verdict(held(LEAKS, outcome=OOM), held(slower), FAILS, STATELESS)

    assert (kind, "still grows by 3.20 MiB a step" in reason) == (INCONCLUSIVE, True)


def test_a_mended_leak_confirms_no_cause_that_keeps_nothing() -> None:
    kind, reason = verdict(held(LEAKS, outcome=OOM), held(STEADY), FAILS, STATELESS)

    assert (kind, "the cause is none that keeps anything" in reason) == (INCONCLUSIVE, True)


def test_a_failure_before_anything_is_kept_refutes_a_leak_whose_change_found_nothing() -> None:
    phases = (*FAILS.phases[:0], type(FAILS.phases[0])(name="load", allocated_bytes=9 * MIB))
    early = result(OOM, 14, phases=phases)
    treated = result(OOM, 14, phases=phases, interventions={"detach": 0})

    kind, reason = verdict(early, treated, early)

    assert (kind, "it fails in its load, before anything is kept" in reason) == (REFUTED, True)
