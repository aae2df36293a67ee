"""All trials of a run of `confirm`: experiments side by side, then the cheapest set of fixes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.experiments.arms import (
    BASELINE,
    CONTROLLED,
    WHOLE,
    baseline_spec,
    control_spec,
    edits_of,
    whole_spec,
)
from oomdoctor.experiments.confirm import STOPPED, confirm
from oomdoctor.experiments.judge import inconclusive, needed_bytes
from oomdoctor.experiments.together import candidates, changes_of, predicted_saving, with_changes
from oomdoctor.lab.edits import with_copies
from oomdoctor.memory.formula import peak_by_formula
from oomdoctor.model.trial import OOM, CommandSpec
from oomdoctor.record import NamedTuple, replace
from oomdoctor.search.minimal import find_minimal
from oomdoctor.search.rounds import abreast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.experiments.arms import Subject
    from oomdoctor.experiments.experiment import Experiment
    from oomdoctor.experiments.plan import Planned
    from oomdoctor.model.job import Job
    from oomdoctor.model.trial import Confirmation, OomIdentity, TrialResult, TrialSpec
    from oomdoctor.search.minimal import FixSet
    from oomdoctor.search.rounds import Ask, Search

ARM, EXPERIMENT = "arm", "experiment"


class Verdicts(NamedTuple):
    """What the trials of a run came to."""

    confirmations: tuple[Confirmation, ...]
    trials: tuple[TrialResult, ...]
    fixes: FixSet | None = None
    stopped: str | None = None


class Trials:
    """Turns what the experiments ask for into trials, and the other way round."""

    def __init__(
        self,
        subject: Subject,
        planned: Sequence[Planned],
        *,
        cap_bytes: int | None = None,
        measures_whole: bool = False,
        wanted: OomIdentity | None = None,
    ) -> None:
        """Take the plan; `wanted` is how the diagnosed failure looked.

        `measures_whole` says that the back end has memory for a run without its cap.
        """
        self._subject = replace(subject, treated=None)  # which stands for a single suspect
        self._planned = planned
        self._treated = {
            one.experiment.name: one.treated for one in planned if one.experiment is not None
        }
        self._cap_bytes = cap_bytes
        self._measures_whole = measures_whole
        self._wanted = wanted
        self._remedies = {one.name: one for one in candidates(self._subject)}
        planned_too = (one.experiment for one in planned)
        self._known = {one.name: one for one in planned_too if one is not None} | self._remedies
        self.titles = {name: one.title for name, one in self._known.items()}

    def spec_of(self, ask: Ask) -> TrialSpec:
        """Return the trial of an arm, or of a set of changes; equal baselines are one trial."""
        values = dict(ask.values)
        if ARM not in values:
            chosen = [self._remedies[name] for name in values]
            spec = with_changes(self._subject, chosen)
            return replace(spec, values=values, repeat=ask.repeat)
        experiment = self._known[str(values[EXPERIMENT])]
        if values[ARM] == BASELINE:
            spec = baseline_spec(self._subject, experiment)
            return replace(spec, values={ARM: BASELINE}, repeat=ask.repeat)
        if values[ARM] == WHOLE:
            spec = whole_spec(self._subject, experiment)
            return replace(spec, values={ARM: WHOLE}, repeat=ask.repeat)
        if values[ARM] == CONTROLLED:
            spec = control_spec(self._subject, experiment)
            return replace(spec, values=values, repeat=spec.repeat + ask.repeat)
        treated = self._treated.get(experiment.name)
        if treated is None:
            raise ValueError(f"{experiment.name} was planned and cannot be done")
        return replace(treated, values=values, repeat=ask.repeat)

    def search(self, *, minimal: bool = False) -> Search[Verdicts]:
        """Ask for all experiments, and then for the cheapest set of changes that do."""
        tests = [one for one in self._planned if one.experiment is not None]
        found = yield from abreast([self._confirm(one) for one in tests])
        verdicts = self._with_untested(
            dict(zip((t.suspect.cause for t in tests), found, strict=True))
        )
        trials = _trials(verdicts)
        reasons = (one.reason for one in verdicts if one.reason.startswith(STOPPED))
        stopped = next((one.removeprefix(STOPPED) for one in reasons), None)
        fixes = None
        if minimal and stopped is None:
            fixes = yield from self._fixes(trials)
            trials = tuple({one.key: one for one in (*trials, *fixes.trials)}.values())
            stopped = fixes.stopped
        return Verdicts(verdicts, trials, fixes, stopped)

    def write_configs(self, names: Sequence[str], folder: Path) -> tuple[str, ...]:
        """Write copies of the configs with some changes; return where they are.

        Changes that no fix spells in a config are in none of them.
        """
        chosen = [self._remedies[name] for name in names]
        command = with_changes(self._subject, chosen).command
        if command is None:
            fixes = [self._subject.fixes.get(one.fix or "") for one in chosen]
            patches = [one for fix in fixes if fix is not None for one in fix.patches]
            files = tuple(dict.fromkeys(one.file for one in patches if one.file is not None))
            reader = CommandSpec(arguments=files, folder=str(Path.cwd()))
            edits = tuple(one for fix in fixes for one in edits_of(fix, reader))
            command = replace(reader, edits=edits)
        if not command.edits:
            return ()
        with_copies(command, folder)
        return tuple(str(path) for path in sorted(folder.rglob("*")) if path.is_file())

    def _confirm(self, planned: Planned) -> Search[Confirmation]:
        experiment = _experiment(planned)
        return confirm(
            planned.suspect.cause,
            experiment,
            cap_bytes=self._cap_bytes,
            measures_whole=self._measures_whole,
            wanted=self._wanted,
            predicted_bytes=predicted_saving(experiment, self._subject, _peak),
        )

    def _with_untested(self, verdicts: dict[str, Confirmation]) -> tuple[Confirmation, ...]:
        """Return the verdicts in the order of the plan, with those that could not be tested."""
        return tuple(
            verdicts.get(one.suspect.cause) or inconclusive(one.suspect.cause, "", one.reason)
            for one in self._planned
        )

    def _fixes(self, trials: Sequence[TrialResult]) -> Search[FixSet]:
        needed = [needed_bytes(one) or 0 for one in trials if one.outcome == OOM]
        over = None
        if needed and self._cap_bytes is not None:
            over = max(0, max(needed) - self._cap_bytes)
        changes = changes_of(self._remedies.values(), self._subject, _peak)
        fixes = yield from find_minimal(changes, overshoot_bytes=over)
        return fixes


def _experiment(planned: Planned) -> Experiment:
    if planned.experiment is None:
        raise ValueError(f"{planned.suspect.cause} has no experiment")
    return planned.experiment


def _peak(job: Job) -> int:
    """Return the peak of a job by formula: what a change should save comes from it."""
    return max(one.allocated_bytes for one in peak_by_formula(job).phases)


def _trials(verdicts: Sequence[Confirmation]) -> tuple[TrialResult, ...]:
    """Return all trials of the verdicts, each once, in their order."""
    runs = (
        one
        for verdict in verdicts
        for one in (*verdict.baseline, *verdict.treated, *verdict.control, *verdict.whole)
    )
    return tuple({one.key: one for one in runs}.values())
