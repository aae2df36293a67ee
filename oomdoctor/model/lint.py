"""Values of a lint run: findings with their places, files, jobs, and the job as understood."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from oomdoctor.model.core import Conflict, Quote, RuleFault
    from oomdoctor.model.enums import Maturity, Origin, Severity
    from oomdoctor.model.plan import NotEvaluated, Prescription


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """One rule that holds for a job: what is wrong, where it is written, what cures it.

    `path`, `line` and `column` (1-based) are absent where nothing in a file says it: a setting
    that is missing has no line. `assumed` names what was not stated but assumed, in words with
    its source; `breaks` says in which version a key stops to work, where that is not the version
    in use. `key` is the dotted setting that the finding is about, stable when lines move.
    `source_line` is the whole line as the file holds it.
    """

    code: str
    rule: str
    severity: Severity
    title: str
    message: str
    category: str
    maturity: Maturity
    path: str | None = None
    line: int | None = None
    column: int | None = None
    end_column: int | None = None
    key: str | None = None
    quotes: tuple[Quote, ...] = ()
    fixes: tuple[Prescription, ...] = ()
    assumed: tuple[str, ...] = ()
    breaks: str | None = None
    basis: str | None = None
    url: str | None = None
    source_line: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """A finding that is held back: how (comment, baseline, settings), and the reason given."""

    finding: LintFinding
    how: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """One file: its dialect (None where it was not recognised) and what was found in it.

    `suppressed` are findings that a comment, a baseline or the settings hold back.
    """

    path: str
    dialect: str | None
    findings: tuple[LintFinding, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderstoodRow:
    """One line of the job as understood: what, its value as printed, its formula or source.

    `bytes` is there for rows of memory; `origin` says whether it is stated, derived or assumed.
    `group` is "job" (model, batch, tokens) or "memory" (the six parts and their sum). `of_bytes` is
    the card's memory, where the sum is compared with it.
    """

    group: str
    name: str
    text: str
    origin: Origin
    source: str | None = None
    bytes: int | None = None
    of_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """Files that are one job together, the job as understood, and rules that could not speak."""

    files: tuple[FileReport, ...]
    understood: tuple[UnderstoodRow, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """What a lint run found: its jobs, the rules that could not be used, remarks.

    `order` names the files in the order in which they were given; those that were read because
    another one names them come behind.
    """

    jobs: tuple[JobReport, ...]
    faults: tuple[RuleFault, ...] = ()
    notes: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[FileReport, ...]:
        """Return each file once, in the order in which they were given."""
        found: dict[str, FileReport] = {}
        for file in (file for job in self.jobs for file in job.files):
            held = found.get(file.path)
            found[file.path] = file if held is None else _merged(held, file)
        given = [found.pop(path) for path in self.order if path in found]
        return (*given, *found.values())

    @property
    def findings(self) -> tuple[LintFinding, ...]:
        """Return all findings that are not held back."""
        return tuple(finding for file in self.files for finding in file.findings)


def _merged(one: FileReport, other: FileReport) -> FileReport:
    """Join what two jobs that share a file say of it; what both find is found once."""
    return replace(
        one,
        findings=_each_once(one.findings, other.findings),
        suppressed=(*one.suppressed, *(s for s in other.suppressed if s not in one.suppressed)),
        notes=tuple(dict.fromkeys((*one.notes, *other.notes))),
    )


def _each_once(
    findings: tuple[LintFinding, ...], others: tuple[LintFinding, ...]
) -> tuple[LintFinding, ...]:
    held = {(one.code, one.line, one.column) for one in findings}
    return (*findings, *(one for one in others if (one.code, one.line, one.column) not in held))
