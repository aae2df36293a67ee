"""Optimizers: the states that each holds, and which weights it treats in a way of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from oomdoctor.memory.formula_optimizer import step_bytes
from oomdoctor.memory.tape import Param
from oomdoctor.model.job import Job, OptimizerSpec
from oomdoctor.record import replace
from oomdoctor.worker.twins.build import empty_model
from oomdoctor.worker.twins.config import config_of
from oomdoctor.worker.twins.optimizer import decay_groups
from tests.worker.jobs import CONFIG, EMBEDDING, JOB, PARAMETERS
from tests.worker.ledger import Ledger, Watching

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[Job], Watching]

LINEARS = 2 * (64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128)
SMALL = (2 * 2 * 64 * 32 + 5 * 64) / PARAMETERS
"""The share of weights of less than 4,096 elements, whose states bitsandbytes keeps in fp32."""
IN_8_BITS = (1 - SMALL) * (1 + 4 / 256)


@pytest.mark.parametrize(
    ("spec", "bytes_each"),
    [
        (OptimizerSpec(implementation="for-loop"), 8.0),
        (OptimizerSpec(implementation="fused"), 8.0),
        (OptimizerSpec(name="adam"), 8.0),
        (OptimizerSpec(name="adamw-bnb"), 8.0),
        (OptimizerSpec(name="adamw-8bit"), IN_8_BITS * 2 + SMALL * 8),
        (OptimizerSpec(name="lion"), 4.0),
        (OptimizerSpec(name="lion-8bit"), IN_8_BITS + SMALL * 4),
        (OptimizerSpec(name="adagrad"), 4.0),
        (OptimizerSpec(name="ademamix"), 12.0),
        (OptimizerSpec(name="rmsprop"), 4.0),
        (OptimizerSpec(name="sgd-momentum"), 4.0),
        (OptimizerSpec(name="sgd"), 0.0),
        (OptimizerSpec(name="adafactor"), 0.0746),
        (OptimizerSpec(name="muon"), 8.0 - 4.0 * LINEARS / PARAMETERS),
    ],
    ids=lambda value: (
        f"{value.name} {value.implementation}" if not isinstance(value, float) else ""
    ),
)
def test_an_optimizer_holds_its_states(run: Run, spec: OptimizerSpec, bytes_each: float) -> None:
    watching = run(replace(JOB, optimizer=spec, framework="torch"))

    expected = PARAMETERS * bytes_each
    assert watching.sizes.get("optimizer", 0) == pytest.approx(expected, rel=0.05, abs=1000)


@pytest.mark.parametrize(("name", "states"), [("adamw-8bit", 2), ("lion-8bit", 1)])
def test_trainer_keeps_the_states_of_embeddings_in_32_bits(
    run: Run, name: str, states: int
) -> None:
    job = replace(JOB, optimizer=OptimizerSpec(name=name))
    plain, trainer = (
        run(replace(job, framework=framework)) for framework in ("torch", "transformers")
    )

    grown = trainer.sizes["optimizer"] - plain.sizes["optimizer"]
    assert grown == pytest.approx(states * EMBEDDING * (4 - 1 - 4 / 256), abs=2000)


def test_states_of_a_projected_gradient_have_its_rank(run: Run) -> None:
    low, high = (
        run(replace(JOB, dtype="bf16", optimizer=OptimizerSpec(name="galore", rank=rank)))
        for rank in (4, 8)
    )

    sides = 2 * (2 * (64 * 3) + 2 * (2 * 64 + 32) + 3 * (2 * 128 + 64))
    assert high.sizes["optimizer"] - low.sizes["optimizer"] == 4 * sides * 2


def test_trainer_lets_biases_and_norms_go_without_decay() -> None:
    job = replace(JOB, model=replace(JOB.model, config={**CONFIG, "attention_bias": True}))
    config = config_of(job, Watching(Ledger()))
    model = empty_model(config, task="sft", dtype=torch.float32, observer=Watching(Ledger()))
    names = {id(weight): name for name, weight in model.named_parameters()}

    _, without = decay_groups(model, 0.1)

    found = {names[id(weight)].rpartition("layers.")[2] for weight in without["params"]}
    assert "0.self_attn.q_proj.bias" in found
    assert "0.post_attention_layernorm.weight" in found
    assert all("proj.weight" not in name for name in found)


@pytest.mark.parametrize(
    ("name", "copies"), [("sgd", 1), ("sgd-momentum", 1), ("rmsprop", 1), ("adamw", 0)]
)
def test_a_decay_costs_a_copy_only_where_it_is_added_to_gradients(
    run: Run, name: str, copies: int
) -> None:
    plain, decaying = (
        run(replace(JOB, optimizer=OptimizerSpec(name=name, decay=decay))).peaks["step 2/optimizer"]
        for decay in (0.0, 0.01)
    )

    assert decaying - plain == pytest.approx(copies * PARAMETERS * 4, rel=0.01, abs=1000)


@pytest.mark.parametrize("name", ["sgd", "sgd-momentum", "rmsprop", "adagrad"])
def test_the_formula_makes_as_many_copies_in_a_step(run: Run, name: str) -> None:
    weight = (Param("weight", PARAMETERS, 4, trains=True), 1)
    for decay in (0.0, 0.01):
        job = replace(JOB, optimizer=OptimizerSpec(name=name, decay=decay))
        peaks = run(job).peaks

        grown = peaks["step 2/optimizer"] - peaks["step 2/zero-grad"]
        assert grown == pytest.approx(step_bytes(job, [weight]), rel=0.02, abs=4096)


def test_weights_that_are_stepped_in_backward_are_projected_all_the_same(run: Run) -> None:
    spec = OptimizerSpec(name="galore", rank=4)
    at_once, one_by_one = (
        run(replace(JOB, optimizer=replace(spec, in_backward=early))).sizes["optimizer"]
        for early in (False, True)
    )

    assert one_by_one == at_once
