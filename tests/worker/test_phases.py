"""The phases of a run, and what each holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from oomdoctor.model.job import EvalSpec, GenerationSpec, Job, OptimizerSpec
from oomdoctor.record import replace
from oomdoctor.worker.run.job import phases_of, run_job
from tests.worker.jobs import CONFIG, JOB, LORA, PARAMETERS
from tests.worker.ledger import Ledger, Watching

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[Job], Watching]

LOGITS = 2 * 32 * 3000 * 4
WHOLE = replace(
    JOB,
    lora=LORA,
    evaluation=EvalSpec(batch=2, seq_len=16),
    generation=GenerationSpec(batch=1, prompt=4, new_tokens=2),
    saves=True,
    merges=True,
    resumes=True,
)
ANSWERS = replace(JOB, task="generation", optimizer=None)
CACHE_TOKEN = 2 * 2 * 2 * 16 * 4  # bytes: layers, keys and values, heads, width, fp32


def places(watching: Watching) -> list[str]:
    return list(dict.fromkeys(place.partition("/")[0] for place in watching.peaks))


def test_phases_come_in_order_and_a_merge_last(run: Run) -> None:
    expected = ["load", "step 1", "step 2", "evaluation", "generation", "save", "resume", "merge"]

    assert places(run(WHOLE)) == expected


def test_only_the_phases_that_are_asked_for_run() -> None:
    ledger = Ledger()
    watching = Watching(ledger)

    run_job(WHOLE, torch.device("cpu"), watching, phases=("step 1", "merge"))
    watching.close()

    assert places(watching) == ["load", "step 1", "merge"]


@pytest.mark.parametrize(
    ("job", "phases"),
    [
        (JOB, ("load", "step 1", "step 2")),
        (replace(JOB, merges=True), ("load", "step 1", "step 2")),
        (ANSWERS, ("load",)),
        (replace(ANSWERS, task="forward"), ("load", "evaluation")),
    ],
)
def test_a_job_has_the_phases_that_it_names(job: Job, phases: tuple[str, ...]) -> None:
    assert phases_of(job) == phases


def test_weights_are_counted_once_and_rotary_tables_with_them(run: Run) -> None:
    assert run(JOB).sizes["weights"] - PARAMETERS * 4 in range(1024)


def test_tied_weights_share_their_storage(run: Run) -> None:
    model = replace(JOB.model, config={**CONFIG, "tie_word_embeddings": True})

    tied = run(replace(JOB, model=model)).sizes["weights"]

    assert run(JOB).sizes["weights"] - tied == 3000 * 64 * 4


def test_gradients_are_gone_between_steps(run: Run) -> None:
    peaks = run(JOB).peaks

    assert peaks["step 1/zero-grad"] > peaks["step 2"] + PARAMETERS * 4 - 8192


def test_states_of_the_optimizer_stay_from_the_first_step_on(run: Run) -> None:
    peaks = run(JOB).peaks

    assert peaks["step 2/forward"] - peaks["step 1/forward"] == pytest.approx(
        PARAMETERS * 8, rel=0.01
    )


def test_accumulated_gradients_stay_through_the_micro_steps(run: Run) -> None:
    once, thrice = (run(replace(JOB, grad_accum=n)).peaks for n in (1, 3))

    grown = thrice["step 1/forward"] - once["step 1/forward"]
    assert grown == pytest.approx(PARAMETERS * 4, rel=0.05)


def test_a_plain_loop_keeps_its_outputs_through_backward(run: Run) -> None:
    trainer, plain = (run(replace(JOB, framework=name)).peaks for name in ("transformers", "torch"))

    assert plain["step 1/backward"] - trainer["step 1/backward"] == pytest.approx(LOGITS, rel=0.02)
    assert plain["step 2/forward"] - trainer["step 2/forward"] == pytest.approx(LOGITS, rel=0.02)


def test_trainer_widens_what_a_model_returns_under_autocast(run: Run) -> None:
    spec = EvalSpec(batch=2, seq_len=32, batches=1, keeps_outputs=True)
    job = replace(JOB, amp="bf16", evaluation=spec)

    trainer, plain = (
        run(replace(job, framework=name)).sizes["logits and loss"]
        for name in ("transformers", "torch")
    )

    assert (trainer, plain) == (LOGITS, LOGITS // 2)


def test_an_average_is_one_more_copy_of_what_trains(run: Run) -> None:
    with_average = run(replace(JOB, ema=True)).peaks["step 1/forward"]

    assert with_average - run(JOB).peaks["step 1/forward"] == PARAMETERS * 4


def test_steps_in_backward_never_hold_all_gradients(run: Run) -> None:
    spec = OptimizerSpec(name="sgd", implementation="for-loop")
    job = replace(JOB, optimizer=spec)
    early = run(replace(job, optimizer=replace(spec, in_backward=True))).peaks

    kept = run(job).peaks["step 1/zero-grad"] - early["step 1/zero-grad"]
    assert kept == pytest.approx(PARAMETERS * 4, rel=0.01)


def test_kept_outputs_grow_with_every_batch_and_are_doubled_while_joined(run: Run) -> None:
    def peak(batches: int) -> int:
        spec = EvalSpec(batch=2, seq_len=32, batches=batches, keeps_outputs=True)
        watching = run(replace(JOB, evaluation=spec))
        return max(v for place, v in watching.peaks.items() if place.startswith("evaluation"))

    # three and more: the joined ones twice, and the latest
    assert peak(20) - peak(10) == pytest.approx(2 * 10 * LOGITS, rel=0.02)


def test_outputs_that_go_to_the_host_in_between_do_not_grow(run: Run) -> None:
    def peak(batches: int) -> int:
        spec = EvalSpec(batch=2, seq_len=32, batches=batches, keeps_outputs=True, accumulation=4)
        watching = run(replace(JOB, evaluation=spec))
        assert watching.emptied
        return max(v for place, v in watching.peaks.items() if place.startswith("evaluation"))

    assert peak(20) == peak(8)


@pytest.mark.parametrize("new", [4, 40])
def test_a_dynamic_cache_holds_prompt_and_answer(run: Run, new: int) -> None:
    spec = GenerationSpec(batch=2, prompt=8, new_tokens=new)
    watching = run(replace(ANSWERS, generation=spec))
    grown = watching.peaks["generation"] - watching.sizes["weights"]
    cache = 2 * (8 + new - 1) * CACHE_TOKEN

    assert cache < grown < 3 * cache + 100_000


def test_a_long_answer_runs_through_the_model_at_both_ends_alone(run: Run) -> None:
    spec = GenerationSpec(batch=1, prompt=8, new_tokens=300)
    watching = run(replace(ANSWERS, generation=spec))

    assert watching.assumed == []
    assert watching.sizes["kv cache"] > 250 * CACHE_TOKEN


def test_a_static_cache_is_there_at_once(run: Run) -> None:
    static = GenerationSpec(batch=1, prompt=8, new_tokens=392, cache="static")
    watching = run(replace(ANSWERS, generation=static))

    grown = watching.peaks["generation"] - watching.sizes["weights"]
    assert grown == pytest.approx(400 * CACHE_TOKEN, rel=0.3)


def test_several_answers_each_have_a_cache(run: Run) -> None:
    def peak(returns: int) -> int:
        spec = GenerationSpec(batch=1, prompt=64, new_tokens=64, returns=returns)
        return run(replace(ANSWERS, generation=spec)).peaks["generation"]

    assert peak(4) - peak(1) >= 3 * 127 * CACHE_TOKEN


def test_resumed_states_are_there_again(run: Run) -> None:
    watching = run(replace(JOB, resumes=True))

    assert ("resume", "optimizer") in watching.told
    assert watching.ledger.bytes >= PARAMETERS * 4 * 3


def test_merging_lets_the_adapter_and_its_states_go(run: Run) -> None:
    watching = run(replace(WHOLE, evaluation=None, generation=None, resumes=False))

    base = run(replace(JOB, optimizer=None, task="forward")).sizes["weights"]
    assert watching.ledger.bytes - base in range(-1024, 16_384)
