"""What baseline, treatment and control say together."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.experiments.catalogue import experiments_of
from oomdoctor.experiments.confirm import confirm
from oomdoctor.experiments.experiment import Experiment
from oomdoctor.model.trial import (
    CONFIRMED,
    CRASH,
    FIT,
    INCONCLUSIVE,
    OOM,
    REFUTED,
    OomIdentity,
    PhasePeak,
    TrialResult,
)
from oomdoctor.search.rounds import Ask, Stopped, run

GIB = 1 << 30
CAP = 10 * GIB
EXPERIMENT = Experiment(
    name="chunked-loss", causes=("logits-vocab-fp32",), title="a loss in chunks", hook="chunked"
)
LOSS = OomIdentity(backend="cuda", exception="OutOfMemoryError", site="loss_utils.py:loss")
STEP = OomIdentity(backend="cuda", exception="OutOfMemoryError", site="adam.py:step")


def result(outcome: str, needs: float, **more: Any) -> TrialResult:
    """Return a result; what it needs above the cap is what it asked for in vain."""
    fits = outcome == FIT
    held = int(needs * GIB) if fits else 9 * GIB
    values: dict[str, Any] = {
        "key": "k",
        "values": {},
        "backend": "formula",
        "outcome": outcome,
        "phases": (PhasePeak(name="step 1", allocated_bytes=held),),
        "allocated_bytes": held,
        "requested_bytes": None if fits else int(needs * GIB) - held,
        "identity": None if fits else LOSS,
        **more,
    }
    return TrialResult(**values)


FAILS = result(OOM, 14)


def verdict(
    baseline: TrialResult = FAILS,
    treated: TrialResult | None = None,
    control: TrialResult = FAILS,
    **more: Any,
) -> tuple[str, str, list[str]]:
    arms = {"baseline": baseline, "treated": treated or result(FIT, 8), "control": control}
    asked: list[str] = []

    def trial(ask: Ask) -> TrialResult:
        asked.append(str(ask.values["arm"]))
        return arms[str(ask.values["arm"])]

    made = run(confirm("logits-vocab-fp32", EXPERIMENT, cap_bytes=CAP, **more), trial)
    return made.verdict, made.reason, asked


def test_a_cause_is_confirmed_if_its_change_alone_makes_the_run_fit() -> None:
    kind, reason, asked = verdict()

    assert kind == CONFIRMED
    assert reason == "it fits with a loss in chunks, and fails without"
    assert asked == ["baseline", "treated", "control"]


def test_a_saving_far_from_its_prediction_is_said_beside_the_verdict() -> None:
    kind, reason, _ = verdict(predicted_bytes=2 * GIB)

    assert kind == CONFIRMED
    assert "it saves 6.00 GiB where 2.00 GiB were predicted" in reason


def test_a_change_without_effect_on_the_failure_refutes_and_needs_no_control() -> None:
    kind, reason, asked = verdict(treated=FAILS)

    assert kind == REFUTED
    assert reason == "with a loss in chunks it fails in the same place"
    assert asked == ["baseline", "treated"]


@pytest.mark.parametrize(
    ("arms", "said"),
    [
        ({"baseline": result(FIT, 8)}, "does not fail here"),
        ({"baseline": result(CRASH, 8, reason="KeyError")}, "ends by crash: KeyError"),
        ({"wanted": STEP}, "fails otherwise than the log"),
        ({"control": result(FIT, 8)}, "a change that should not help fits as well"),
        ({"treated": result(CRASH, 8, reason="KeyError")}, "a changed run ended by crash"),
        ({"treated": result(OOM, 14, identity=STEP)}, "moves from loss_utils.py:loss to adam.py"),
        ({"treated": result(OOM, 14, steps=3)}, "it helps, but not enough alone"),
        ({"treated": result(FIT, 9, interventions={"chunked": 0})}, "never took effect"),
    ],
)
def test_whatever_else_happens_leaves_the_cause_open(arms: dict[str, Any], said: str) -> None:
    kind, reason, _ = verdict(**arms)

    assert kind == INCONCLUSIVE
    assert said in reason


def test_a_run_at_the_edge_is_repeated_and_a_small_saving_proves_nothing() -> None:
    baseline = result(OOM, 10.1)

    kind, reason, asked = verdict(baseline=baseline, treated=result(FIT, 9.9), control=baseline)

    assert kind == INCONCLUSIVE
    assert "saves only 2% of what is needed" in reason
    assert asked == ["baseline"] + ["treated"] * 3 + ["control"] * 3


def test_the_saving_is_that_of_the_phase_which_failed() -> None:
    phases = (
        PhasePeak(name="step 1", allocated_bytes=3 * GIB),
        PhasePeak(name="evaluation", allocated_bytes=9 * GIB),
    )
    treated = result(FIT, 9, phases=phases)

    made = run(
        confirm("c", EXPERIMENT, cap_bytes=CAP),
        lambda ask: treated if ask.values["arm"] == "treated" else FAILS,
    )

    assert made.measured_saving_bytes == 11 * GIB
    assert made.at_least


def test_a_search_that_is_stopped_says_so_and_keeps_what_it_has() -> None:
    search = confirm("c", EXPERIMENT)
    next(search)
    search.send((FAILS,))

    with pytest.raises(StopIteration) as ended:
        search.throw(Stopped("the budget is spent"))

    made = ended.value.value
    assert (made.verdict, made.reason) == (INCONCLUSIVE, "stopped: the budget is spent")
    assert made.baseline == (FAILS,)


def test_a_cause_of_the_allocator_is_not_judged_where_tensors_are_counted_without_one() -> None:
    (experiment, _) = experiments_of("fragmentation")
    fails = result(OOM, 14, backend="cpu")

    made = run(confirm("fragmentation", experiment), lambda _: fails)

    assert made.verdict == INCONCLUSIVE
    assert "counted without the allocator" in made.reason


def test_a_change_that_needs_less_but_too_much_still_refutes_nothing() -> None:
    kind, reason, _ = verdict(treated=result(OOM, 11))

    assert kind == INCONCLUSIVE
    assert "it needs 3.00 GiB less there" in reason
