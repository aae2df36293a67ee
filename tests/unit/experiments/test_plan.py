"""Which experiments are planned for the leading causes."""

from __future__ import annotations

from typing import Any

from oomdoctor.experiments.arms import Subject, baseline_spec, control_spec, treated_spec
from oomdoctor.experiments.catalogue import EXPERIMENTS
from oomdoctor.experiments.plan import Price, Suspect, plan, price
from oomdoctor.model.enums import Safety
from oomdoctor.model.job import Job, ModelSpec
from oomdoctor.model.plan import Patch, Prescription
from oomdoctor.model.trial import CommandSpec, FileEdit, TrialSpec

JOB = Job(model=ModelSpec(name="m", config={}, source="test"), batch=4, attention="eager")
BY_NAME = {one.name: one for one in EXPERIMENTS}
COMMAND = CommandSpec(arguments=("python", "train.py", "train.yaml"), folder=".")


def suspects(**shares: float) -> list[Suspect]:
    return [Suspect(cause=name.replace("_", "-"), probability=p) for name, p in shares.items()]


def of_job(job: Job = JOB) -> Subject:
    return Subject(spec=TrialSpec(values={}, job=job, cap_bytes=1 << 30))


def of_command(**more: Any) -> Subject:
    return Subject(spec=TrialSpec(values={}, command=COMMAND), **more)


def test_each_leading_cause_gets_an_experiment_that_its_rivals_do_not_share() -> None:
    made = plan(suspects(no_grad_checkpointing=0.5, batch_or_seq_too_large=0.4), of_job())

    names = {one.suspect.cause: one.experiment.name for one in made if one.experiment}
    assert names == {
        "no-grad-checkpointing": "checkpoint-activations",
        "batch-or-seq-too-large": "half-rows",
    }


def test_an_unlikely_cause_is_left_out() -> None:
    made = plan(suspects(attention_not_flash=0.9, optimizer_states=0.01), of_job())

    assert [one.suspect.cause for one in made] == ["attention-not-flash"]


def test_a_cause_without_a_way_to_change_the_run_says_why() -> None:
    made = plan(suspects(ref_model_copy=0.6, driver_regression=0.3), of_job())

    reasons = {one.suspect.cause: one.reason for one in made}
    assert "--treated takes a command" in reasons["ref-model-copy"]
    assert reasons["driver-regression"] == "no experiment is known for this cause"


def test_the_price_counts_a_shared_baseline_once() -> None:
    made = plan(suspects(attention_not_flash=0.5, optimizer_states=0.4), of_job())

    assert price(made, 10.0) == Price(trials=5, failing=3, seconds=50.0)


def test_a_job_is_changed_and_a_control_repeats_it() -> None:
    experiment = BY_NAME["fused-attention"]
    treated = treated_spec(of_job(), experiment)
    control = control_spec(of_job(), experiment)

    assert treated is not None
    assert treated.job is not None
    assert treated.job.attention == "sdpa"
    assert control.job == JOB
    assert control != baseline_spec(of_job(), experiment)


def test_a_baseline_is_as_long_as_the_cause_needs_to_show() -> None:
    assert baseline_spec(of_job(), BY_NAME["detach"]).steps == BY_NAME["detach"].steps
    assert baseline_spec(of_job(), BY_NAME["no-grad"]).evaluates


def test_a_command_gets_the_patch_of_its_config_before_anything_is_injected() -> None:
    fix = Prescription(
        fix_id="fused-attention",
        cause="attention-not-flash",
        code="ACT2001",
        title="t",
        safety=Safety.SAFE,
        patches=(Patch(dialect="axolotl", settings={"sdp_attention": True}, file="train.yaml"),),
    )
    experiment = BY_NAME["fused-attention"]
    hooks = frozenset({"attention"})

    patched = treated_spec(of_command(fixes={fix.fix_id: fix}, hooks=hooks), experiment)
    injected = treated_spec(of_command(hooks=hooks), experiment)
    neither = treated_spec(of_command(), experiment)

    assert patched is not None
    assert patched.command is not None
    assert patched.command.edits == (FileEdit(path="train.yaml", key="sdp_attention", value=True),)
    assert injected is not None
    assert injected.command is not None
    assert injected.command.hooks == {"attention": {"implementation": "sdpa"}}
    assert neither is None


def test_the_users_own_command_outranks_what_we_would_change() -> None:
    own = CommandSpec(arguments=("python", "mended.py"), folder=".")

    treated = treated_spec(of_command(treated=own), BY_NAME["detach"])

    assert treated is not None
    assert treated.command == own


def test_the_cap_of_others_is_lifted_where_there_is_one() -> None:
    experiment = BY_NAME["without-the-cap"]

    treated = treated_spec(of_job(), experiment)

    assert treated is not None
    assert treated.cap_bytes is None
    assert treated_spec(of_command(), experiment) is None


def test_a_changed_command_of_the_users_own_stands_for_the_leading_cause_alone() -> None:
    own = CommandSpec(arguments=("python", "mended.py"), folder=".")
    causes = suspects(loss_graph_retained=0.5, python_list_holds_gpu_tensors=0.4)

    made = plan(causes, of_command(treated=own))

    assert {one.suspect.cause: one.way for one in made} == {
        "loss-graph-retained": "your own changed command",
        "python-list-holds-gpu-tensors": "",
    }
