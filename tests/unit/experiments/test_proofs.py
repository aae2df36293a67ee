"""The experiment that would prove a cause is named with the command that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.experiments.proofs import Proof, proofs_of
from oomdoctor.model.core import Artifact, Fact, Finding, Verdict
from oomdoctor.model.enums import Maturity, Origin, Severity, Truth
from oomdoctor.model.lint import UnderstoodRow
from oomdoctor.model.plan import Diagnosis

if TYPE_CHECKING:
    from collections.abc import Sequence


MODEL = UnderstoodRow(group="job", name="model", text="Qwen2.5-7B", origin=Origin.STATED)


def finding(cause: str, probability: float) -> Finding:
    return Finding(
        code="ACT0001",
        cause=cause,
        title=cause,
        severity=Severity.ERROR,
        maturity=Maturity.STABLE,
        probability=probability,
        gate=Verdict(truth=Truth.TRUE),
    )


def diagnosis(
    causes: Sequence[Finding],
    *,
    conclusive: bool = False,
    answer: str = "cause",
    artifacts: tuple[Artifact, ...] = (),
    backend: str = "cuda",
    facts: tuple[Fact, ...] = (),
    understood: tuple[UnderstoodRow, ...] = (),
) -> Diagnosis:
    return Diagnosis(
        answer=answer,
        resource="gpu",
        conclusive=conclusive,
        headline="",
        causes=tuple(causes),
        artifacts=artifacts,
        understood=understood,
        facts={one.key: one for one in (Fact(key="oom.backend", value=backend), *facts)},
    )


@pytest.mark.parametrize(
    "told", [Fact(key="serve.engine", value="vllm"), Fact(key="oom.library", value="xla")]
)
def test_what_no_trial_can_run_has_no_proof(told: Fact) -> None:
    causes = [finding("batch-or-seq-too-large", 0.9)]

    assert proofs_of(diagnosis(causes, conclusive=True)) != ()
    assert proofs_of(diagnosis(causes, conclusive=True, facts=(told,))) == ()


def test_a_config_that_was_given_is_what_the_experiment_changes() -> None:
    found = proofs_of(
        diagnosis(
            [finding("logits-vocab-fp32", 0.9)],
            conclusive=True,
            artifacts=(
                Artifact(id="crash.log", kind="log", path="crash.log"),
                Artifact(id="my train.yaml", kind="config", path="my train.yaml"),
            ),
            understood=(MODEL,),
        )
    )

    assert found == (
        Proof(
            cause="logits-vocab-fp32",
            title=found[0].title,
            command="oomdoctor confirm logits-vocab-fp32 'my train.yaml'",
            needs_card=False,
        ),
    )


def test_a_config_that_names_no_model_makes_no_job() -> None:
    launcher = Artifact(id="accelerate.yaml", kind="config", path="accelerate.yaml")

    found = proofs_of(diagnosis([finding("optimizer-states", 0.9)], artifacts=(launcher,)))

    assert [one.command for one in found] == [
        "oomdoctor confirm optimizer-states -- YOUR_TRAINING_COMMAND"
    ]


def test_without_a_config_the_command_that_failed_is_run() -> None:
    found = proofs_of(diagnosis([finding("fragmentation", 0.9)], conclusive=True))

    assert [(one.command, one.needs_card) for one in found] == [
        ("oomdoctor confirm fragmentation -- YOUR_TRAINING_COMMAND", True)
    ]


@pytest.mark.parametrize(("conclusive", "count"), [(True, 1), (False, 2)])
def test_an_open_answer_names_an_experiment_for_each_leader(conclusive: bool, count: int) -> None:
    causes = [finding("attention-not-flash", 0.5), finding("logits-vocab-fp32", 0.4)]

    found = proofs_of(diagnosis([*causes, finding("fragmentation", 0.1)], conclusive=conclusive))

    assert [one.cause for one in found] == [one.cause for one in causes[:count]]


def test_a_cause_that_is_hardly_thought_of_is_not_tried() -> None:
    assert proofs_of(diagnosis([finding("fragmentation", 0.05)])) == ()


def test_a_cause_without_an_experiment_has_none() -> None:
    assert proofs_of(diagnosis([finding("wrong-device-id", 0.9)], conclusive=True)) == ()


@pytest.mark.parametrize("answer", ["nothing_found", "not_gpu_oom"])
def test_what_is_no_memory_failure_needs_no_experiment(answer: str) -> None:
    assert proofs_of(diagnosis([finding("fragmentation", 0.9)], answer=answer)) == ()


def test_a_script_that_was_given_is_run() -> None:
    found = proofs_of(
        diagnosis(
            [finding("logits-vocab-fp32", 0.9)],
            artifacts=(Artifact(id="train.py", kind="config", path="train.py"),),
        )
    )

    assert [one.command for one in found] == [
        "oomdoctor confirm logits-vocab-fp32 -- python train.py"
    ]


@pytest.mark.parametrize("backend", ["mps", "xpu", "npu"])
def test_where_no_trial_can_run_there_is_no_experiment(backend: str) -> None:
    assert proofs_of(diagnosis([finding("logits-vocab-fp32", 0.9)], backend=backend)) == ()
