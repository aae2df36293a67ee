"""Preference and reward training: references, pairs, losses; against TRL's own trainers."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from oomdoctor.lab.protocol import decode
from oomdoctor.memory.stream_replay import replay
from oomdoctor.model.job import CardSpec, Job
from oomdoctor.record import replace
from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.fake.trace import trace
from oomdoctor.worker.run.job import run_job
from oomdoctor.worker.twins.log_probs import SelectedLogProbs
from oomdoctor.worker.twins.preference import answered
from tests.worker.fake.cards import A100
from tests.worker.jobs import JOB, LORA, PARAMETERS
from tests.worker.ledger import Ledger, Watching

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[Job], Watching]

STREAMS = Path(__file__).parents[2] / "fixtures" / "streams"
TRL = replace(JOB, framework="trl", loss="chunked", task="dpo")
WHOLE = replace(TRL, loss="full-logits")
LOGITS = 2 * 32 * 3000 * 4  # of the rows of one half of the pairs


def recorded(name: str) -> dict[str, Any]:
    packed = (STREAMS / f"{name}.json.xz").read_bytes()
    facts: dict[str, Any] = json.loads(lzma.decompress(packed))["facts"]
    return facts


@pytest.mark.parametrize("name", ["loop-trl-dpo", "loop-trl-dpo-lora"])
def test_the_peak_is_that_of_trls_own_trainer(name: str) -> None:
    facts = recorded(name)
    job = replace(decode(Job, facts["job"]), loss="chunked")

    stream = trace(job, decode(CardSpec, facts["card"]))

    ours = {one.name: one.allocated_bytes for one in replay(stream).phases}
    theirs = {name: one["allocated_bytes"] for name, one in facts["peaks"].items()}
    assert ours == pytest.approx(theirs, rel=0.0015)


@pytest.mark.parametrize(
    ("task", "reference", "copies"),
    [("dpo", "separate", 2), ("dpo", None, 1), ("kto", "separate", 2), ("orpo", None, 1)],
)
def test_a_separate_reference_is_a_second_model(
    run: Run, task: str, reference: str | None, copies: int
) -> None:
    watching = run(replace(TRL, task=task, reference=reference))

    assert watching.sizes["weights"] == pytest.approx(copies * PARAMETERS * 4, rel=0.01)


def test_the_base_of_an_adapter_is_a_reference_that_costs_no_weights(run: Run) -> None:
    watching = run(replace(TRL, reference="adapter-off", lora=LORA))

    assert watching.sizes["weights"] == pytest.approx(PARAMETERS * 4, rel=0.01)


@pytest.mark.parametrize(
    ("changes", "text"),
    [({"reference": "adapter-off"}, "adapter"), ({"reference": "odd"}, "odd")],
)
def test_a_reference_that_cannot_be_is_named(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(UnsupportedError, match=text):
        run_job(replace(TRL, **changes), torch.device("cpu"), Watching(Ledger()))


def test_whole_logits_of_pairs_are_held_and_tiles_are_not(run: Run) -> None:
    whole, pairs = (run(one).peaks["step 1/forward"] for one in (WHOLE, replace(WHOLE, batch=1)))

    assert whole - pairs > LOGITS


def test_trls_kernel_keeps_logits_once_and_returns_a_gradient_as_large() -> None:
    logits = torch.zeros(2, 5, 11, requires_grad=True)
    ledger = Ledger()

    with ledger:
        values = SelectedLogProbs.apply(logits, torch.zeros(2, 5, dtype=torch.long))
        kept = ledger.bytes
        values.sum().backward()

    assert (kept, logits.grad is not None) == (pytest.approx(4 * 40, abs=120), True)
    assert ledger.peak >= logits.numel() * 4


def test_reward_models_compare_two_rows_for_each_pair(run: Run) -> None:
    watching = run(replace(JOB, framework="trl", task="reward", labels=1))

    tokens_and_mask = 2 * (2 * 2) * 32 * 8
    assert watching.told["step 1", "input"] == tokens_and_mask


def test_dropout_is_switched_off(run: Run) -> None:
    # the first run of a process keeps some bytes that later ones find
    _, wet, dry = (
        run(replace(TRL, lora=replace(LORA, dropout=share))).peaks["step 1/forward"]
        for share in (0.0, 0.5, 0.0)
    )

    assert wet == dry


def test_the_answer_is_the_second_half_of_a_row() -> None:
    mask = answered(replace(TRL, padded=True), 2, 32)["completion_mask"]

    assert [row.nonzero().flatten().tolist() for row in mask] == [
        list(range(16, 32)),
        list(range(16, 28)),
    ]


def test_ktos_mean_without_numbers_that_are_none_is_traced() -> None:
    stream = trace(replace(JOB, task="kto", seq_len=32), A100)

    assert stream.allocations
