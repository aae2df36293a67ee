"""Apply the fixes of findings to the text of files, in memory, until nothing more changes.

Each finding's first fix that changes something is applied. After each round the files are linted
anew, since a fix may settle other findings or make room for one. A fix after which its finding
stands as before and which would change the same again (half the batch, say) is taken back: a
second run must find nothing to do.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, TypeAlias

from oomdoctor.configs.difference import unified
from oomdoctor.configs.patch import edited
from oomdoctor.evidence.source import STDIN_ID
from oomdoctor.linting.content import rewrite
from oomdoctor.linting.files import read_text
from oomdoctor.linting.order import in_order
from oomdoctor.linting.places import stable
from oomdoctor.linting.run import lint_files
from oomdoctor.model.enums import Safety
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from oomdoctor.linting.files import LintFile
    from oomdoctor.linting.run import Known, Wanted
    from oomdoctor.model.lint import LintFinding, LintReport
    from oomdoctor.model.plan import Patch, Prescription

ROUNDS = 20
SAFE = frozenset({Safety.SAFE})
UNSAFE = SAFE | {Safety.CHANGES_SPEED, Safety.CHANGES_MATH}


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A fix that was applied: of which finding, to which file."""

    code: str
    rule: str
    path: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Files before and after, what was applied, and the report on what is left."""

    report: LintReport
    before: Mapping[str, LintFile]
    after: Mapping[str, str]
    applied: tuple[Applied, ...] = ()

    @property
    def changed(self) -> tuple[str, ...]:
        """Return the paths of the files that differ."""
        return tuple(path for path, text in self.after.items() if text != self.before[path].text)

    @property
    def diff(self) -> str:
        """Return the unified diff of all changes, for `patch -p1` in the working directory."""
        here = os.getcwd()
        return "".join(
            unified(self.before[path].text, self.after[path], stable(path, here))
            for path in self.changed
        )

    def write(self, path: str) -> None:
        """Write a changed file as it was written; InputError where it cannot be."""
        file = self.before[path]
        if file.stored is not None:
            rewrite(path, file.stored, before=file.text, after=self.after[path])


Mark: TypeAlias = "tuple[str, str, str, str]"
"""A fix of a finding: code, path, setting, and the fix."""


@dataclasses.dataclass(slots=True, kw_only=True)
class _Work:
    """The state of a run: files as they are now, what was done, which fixes were or are no use."""

    files: dict[str, LintFile]
    applied: list[Applied] = dataclasses.field(default_factory=list)
    done: set[Mark] = dataclasses.field(default_factory=set)
    useless: set[Mark] = dataclasses.field(default_factory=set)


def fixed(
    files: Sequence[LintFile],
    wanted: Wanted,
    *,
    allowed: frozenset[Safety] = SAFE,
    decided: Callable[[LintReport, Sequence[LintFile]], LintReport] = lambda report, _: report,
) -> Fixed:
    """Fix what may be fixed; `decided` takes away what the project holds back.

    Files that were not read to the byte are left alone: what is missing would be lost.
    """
    known: Known = {}
    before = {file.path: file for file in files if file.fault is None and not _is_lossy(file)}
    work = _Work(files=dict(before))

    def linted() -> LintReport:
        now = [work.files.get(file.path, file) for file in files]
        return decided(lint_files(now, wanted, known=known), now)

    report = linted()
    for _ in range(ROUNDS):
        held = (dict(work.files), list(work.applied), set(work.done))
        hit = _round(report, work, allowed)
        if not hit:
            break
        after = linted()
        stubborn = _stubborn(after, work, hit)
        if stubborn:
            work.files, work.applied, work.done = held
            work.useless |= stubborn
        else:
            report = after
    after_texts = {path: file.text for path, file in work.files.items()}
    notes = [
        f"{file.path}: its fixes are left alone, since it was not read to the byte"
        for file in files
        if file.fault is None and _is_lossy(file)
    ]
    report = replace(report, notes=(*report.notes, *notes))
    return Fixed(report=report, before=before, after=after_texts, applied=tuple(work.applied))


def _is_lossy(file: LintFile) -> bool:
    """Say whether a file cannot be written as it was; standard input is good for a patch."""
    return file.stored is None and (file.path != STDIN_ID or bool(file.notes))


def _round(report: LintReport, work: _Work, allowed: frozenset[Safety]) -> set[Mark]:
    """Apply one fix of each finding, where one applies; return what was applied."""
    hit: set[Mark] = set()
    for finding in in_order(report.findings):
        for fix in finding.fixes:
            mark = _mark(finding, fix)
            if fix.safety not in allowed or mark in work.useless or mark in work.done:
                continue
            new = _changed(fix, work.files)
            if new:
                work.files.update(new)
                work.applied += (
                    Applied(code=finding.code, rule=finding.rule, path=path, title=fix.title)
                    for path in new
                )
                hit.add(mark)
                break
    work.done |= hit
    return hit


def _stubborn(report: LintReport, work: _Work, hit: set[Mark]) -> set[Mark]:
    """Return the fixes that cured nothing and would change the files again, without end."""
    return {
        mark
        for finding in report.findings
        for fix in finding.fixes
        if (mark := _mark(finding, fix)) in hit and _changed(fix, work.files)
    }


def _mark(finding: LintFinding, fix: Prescription) -> Mark:
    return (finding.code, finding.path or "", finding.key or "", fix.fix_id)


def _changed(fix: Prescription, files: Mapping[str, LintFile]) -> dict[str, LintFile]:
    """Return the files that a fix changes; none where one of its changes cannot be made."""
    new: dict[str, LintFile] = {}
    for patch in fix.patches:
        if patch.file is None:
            continue
        file = new.get(patch.file) or files.get(patch.file)
        changed = None if file is None else _with(patch, file)
        if changed is None:
            return {}
        new[patch.file] = changed
    return {path: file for path, file in new.items() if file.text != files[path].text}


def _with(patch: Patch, file: LintFile) -> LintFile | None:
    """Return a file after a patch; None where it takes none, or could not be read any more."""
    text = edited(file.readings, patch.dialect, patch.settings)
    if text is None or text == file.text:
        return None if text is None else file
    after = read_text(file, text)
    lost = after.fault is not None or after.dialect != file.dialect
    return None if lost else after
