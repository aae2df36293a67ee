"""The trials of an experiment: the run as it is, the treated one, and the control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.experiments.experiment import CONTROL
from oomdoctor.experiments.job_changes import JOB_CHANGES
from oomdoctor.model.trial import FileEdit
from oomdoctor.record import dataclass, field, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.experiments.experiment import Experiment
    from oomdoctor.model.job import Job
    from oomdoctor.model.plan import Prescription
    from oomdoctor.model.trial import CommandSpec, TrialSpec

BASELINE, TREATED = "baseline", "treated"
CONTROLLED, WHOLE = "control", "without a cap"
_LARGE = 1 << 42
_CONTROL_VARIABLE = "OOMDOCTOR_CONTROL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What fails: a trial as it is, and what is known of how to change it.

    `fixes` are the diagnosis' prescriptions by name, `jobs` the job after each of them. `treated`
    is the user's own changed command, which is taken before everything of ours. `hooks` are the
    injected changes that there are.
    """

    spec: TrialSpec
    fixes: Mapping[str, Prescription] = field(default_factory=dict)
    jobs: Mapping[str, Job] = field(default_factory=dict)
    treated: CommandSpec | None = None
    hooks: frozenset[str] = frozenset()


def baseline_spec(subject: Subject, experiment: Experiment) -> TrialSpec:
    """Return the run as it is, long enough for the cause to show."""
    spec = subject.spec
    return replace(
        spec,
        steps=max(spec.steps, experiment.steps),
        evaluates=spec.evaluates or experiment.evaluates,
        saves=spec.saves or experiment.saves,
    )


def whole_spec(subject: Subject, experiment: Experiment) -> TrialSpec:
    """Return the run as it is, without the cap and on a card that holds whatever it needs."""
    spec = baseline_spec(subject, experiment)
    card = None if spec.card is None else replace(spec.card, total_bytes=_LARGE)
    return replace(spec, cap_bytes=None, card=card)


def control_spec(subject: Subject, experiment: Experiment) -> TrialSpec:
    """Return a run with a change that must not help: another variable, another seed of nothing."""
    spec = baseline_spec(subject, experiment)
    if spec.command is None:
        return replace(spec, repeat=spec.repeat + 1)
    return replace(spec, command=_with_hook(spec.command, CONTROL, {}))


def treated_spec(subject: Subject, experiment: Experiment) -> TrialSpec | None:
    """Return the run without the cause; None where nothing of ours can take it away."""
    spec = baseline_spec(subject, experiment)
    if experiment.lifts_cap:
        return None if spec.cap_bytes is None else replace(spec, cap_bytes=None)
    if spec.job is not None:
        job = _changed_job(spec.job, subject, experiment)
        return None if job is None else replace(spec, job=job)
    command = subject.treated or _changed_command(spec, subject, experiment)
    return None if command is None else replace(spec, command=command)


def way_of(subject: Subject, experiment: Experiment, treated: TrialSpec) -> str:
    """Say how a run is changed for an experiment."""
    if experiment.lifts_cap:
        return "the cap is lifted"
    if treated.job is not None or treated.command is None:
        return "another setting of the job"
    if treated.command == subject.treated:
        return "your own changed command"
    before = subject.spec.command
    if before is not None and treated.command.edits != before.edits:
        new = treated.command.edits[len(before.edits) :]
        return "an edited copy: " + ", ".join(f"{one.path}: {one.key}={one.value}" for one in new)
    if before is not None and treated.command.hooks != before.hooks:
        return f"injected into its processes: {experiment.hook}"
    return "environment: " + ", ".join(f"{k}={v}" for k, v in experiment.environment.items())


def _changed_job(job: Job, subject: Subject, experiment: Experiment) -> Job | None:
    if experiment.job is not None:
        changed = JOB_CHANGES[experiment.job](job)
        if changed is not None:
            return changed
    other = subject.jobs.get(experiment.fix or "")
    return None if other == job else other


def _changed_command(
    spec: TrialSpec, subject: Subject, experiment: Experiment
) -> CommandSpec | None:
    command = spec.command
    if command is None:
        return None
    edits = edits_of(subject.fixes.get(experiment.fix or ""), command)
    if edits:
        return replace(command, edits=(*command.edits, *edits))
    if experiment.environment:
        return replace(command, environment={**command.environment, **experiment.environment})
    if experiment.hook is not None and experiment.hook in subject.hooks:
        return _with_hook(command, experiment.hook, experiment.arguments)
    return None


def edits_of(fix: Prescription | None, command: CommandSpec) -> tuple[FileEdit, ...]:
    """Return the edits of a fix in config files that the command names."""
    if fix is None:
        return ()
    return tuple(
        FileEdit(path=patch.file, key=key, value=value)
        for patch in fix.patches
        if patch.file is not None and any(patch.file in one for one in command.arguments)
        for key, value in patch.settings.items()
        if isinstance(value, (int, float, str))
    )


def _with_hook(
    command: CommandSpec, name: str, arguments: Mapping[str, int | float | str]
) -> CommandSpec:
    return replace(
        command,
        hooks={**command.hooks, name: dict(arguments)},
        environment={**command.environment, _CONTROL_VARIABLE: name},
    )
