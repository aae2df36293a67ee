"""What a project has decided about findings: per-file ignores, comments, a baseline, in that order.

Nothing is thrown away: what is held back stays in the report, with how and why.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from oomdoctor.linting import baseline as known_findings
from oomdoctor.linting import suppressions
from oomdoctor.linting.codes import names_finding, names_rule
from oomdoctor.linting.places import stable
from oomdoctor.model.lint import Suppressed
from oomdoctor.record import dataclass, field, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from oomdoctor.linting.baseline import Baseline
    from oomdoctor.model.lint import FileReport, JobReport, LintReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The decisions: ignored rules by pattern of paths, a baseline, where paths start from.

    Patterns start from `settings_root`, where that is another folder than `root`. `names` maps the
    name of every rule to its code; `is_used` says whether a code was selected.
    """

    root: str
    settings_root: str | None = None
    per_file_ignores: Mapping[str, Sequence[str]] = field(default_factory=dict)
    baseline: Baseline | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    is_used: Callable[[str], bool] | None = None


def applied(report: LintReport, policy: Policy, *, texts: Mapping[str, str]) -> LintReport:
    """Return the report with held-back findings set aside; `texts` are the files by path."""
    is_open = _open_rules(report, policy)
    notes = {
        file.path: suppressions.applied(
            file, texts.get(file.path, ""), is_open=is_open, known=policy.names
        ).notes
        for file in (_by_settings(file, policy) for file in report.files)
    }
    jobs = tuple(_job(job, policy, texts, notes) for job in report.jobs)
    decided = replace(report, jobs=jobs)
    if policy.baseline is not None:
        decided = known_findings.applied(decided, policy.baseline, root=policy.root)
    return decided


def _job(
    job: JobReport,
    policy: Policy,
    texts: Mapping[str, str],
    notes: Mapping[str, tuple[str, ...]],
) -> JobReport:
    """Hold back what a job's files say; the notes are those of a file in all its jobs."""
    files = []
    for file in job.files:
        kept = suppressions.applied(_by_settings(file, policy), texts.get(file.path, ""))
        files.append(replace(kept, notes=notes[file.path]))
    return replace(job, files=tuple(files))


def _open_rules(report: LintReport, policy: Policy) -> Callable[[str], bool]:
    """Return what says whether a name may mean a rule that this run did not judge."""
    silent = {one.code for job in report.jobs for one in job.not_evaluated}

    def is_open(name: str) -> bool:
        codes = [
            code for rule, code in policy.names.items() if names_rule(name, code=code, rule=rule)
        ] or [name.upper()]
        return any(
            code in silent or (policy.is_used is not None and not policy.is_used(code))
            for code in codes
        )

    return is_open


def _by_settings(file: FileReport, policy: Policy) -> FileReport:
    """Hold back what the settings ignore in files like this one."""
    where = stable(file.path, policy.settings_root or policy.root)
    patterns = {
        pattern: names
        for pattern, names in policy.per_file_ignores.items()
        if matches(where, pattern)
    }
    if not patterns:
        return file
    kept, held = [], []
    for finding in file.findings:
        by = next((one for one, names in patterns.items() if names_finding(names, finding)), None)
        if by is None:
            kept.append(finding)
        else:
            reason = f"per-file-ignores of {by!r}"
            held.append(Suppressed(finding=finding, how="settings", reason=reason))
    return replace(file, findings=tuple(kept), suppressed=(*file.suppressed, *held))


def matches(path: str, pattern: str) -> bool:
    """Say whether a path matches a pattern; one without a slash is for names in any folder."""
    if "/" not in pattern:
        return fnmatchcase(path.rpartition("/")[2], pattern)
    whole = pattern.removeprefix("./")
    if fnmatchcase(path, whole):
        return True
    # `configs/**/x.yaml` is for configs/x.yaml, too
    return "**/" in whole and fnmatchcase(path, whole.replace("**/", ""))
