"""Apply the fixes of findings to the text of files, in memory, until nothing more changes.

Each finding's first fix that may be applied is tried once. After each round the files are linted
anew, since a fix may settle other findings or make room for one.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from oomdoctor.configs.difference import unified
from oomdoctor.configs.patch import edited
from oomdoctor.evidence.source import STDIN_ID
from oomdoctor.linting.content import rewrite
from oomdoctor.linting.files import read_text
from oomdoctor.linting.order import in_order
from oomdoctor.linting.run import lint_files
from oomdoctor.model.enums import Safety
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from oomdoctor.linting.files import LintFile
    from oomdoctor.linting.run import Wanted
    from oomdoctor.model.lint import LintFinding, LintReport
    from oomdoctor.model.plan import Patch, Prescription

ROUNDS = 10
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
        """Return the unified diff of all changes."""
        return "".join(
            unified(self.before[path].text, self.after[path], path) for path in self.changed
        )

    def write(self, path: str) -> None:
        """Write a changed file as it was written; InputError where it cannot be."""
        file = self.before[path]
        if file.stored is not None:
            rewrite(path, file.stored, before=file.text, after=self.after[path])


@dataclasses.dataclass(slots=True, kw_only=True)
class _Work:
    """The state of a run: files as they are now, what was done, what was tried."""

    files: dict[str, LintFile]
    applied: list[Applied] = dataclasses.field(default_factory=list)
    tried: set[tuple[str, str, str]] = dataclasses.field(default_factory=set)


def fixed(
    files: Sequence[LintFile],
    wanted: Wanted,
    *,
    allowed: frozenset[Safety] = SAFE,
    decided: Callable[[LintReport], LintReport] = lambda report: report,
) -> Fixed:
    """Fix what may be fixed; `decided` takes away what the project holds back.

    Files that were not read to the byte are left alone: what is missing would be lost.
    """
    now = {file.path: file for file in files}
    before = {file.path: file for file in files if file.fault is None and not _is_lossy(file)}
    work = _Work(files=dict(before))
    report = decided(lint_files(files, wanted))
    for _ in range(ROUNDS):
        if not _round(report, work, allowed):
            break
        now |= work.files
        report = decided(lint_files(tuple(now.values()), wanted))
    after = {path: file.text for path, file in work.files.items()}
    notes = [
        f"{file.path}: its fixes are left alone, since it was not read to the byte"
        for file in files
        if file.fault is None and _is_lossy(file)
    ]
    report = replace(report, notes=(*report.notes, *notes))
    return Fixed(report=report, before=before, after=after, applied=tuple(work.applied))


def _is_lossy(file: LintFile) -> bool:
    """Say whether a file cannot be written as it was; standard input is good for a patch."""
    return file.stored is None and (file.path != STDIN_ID or bool(file.notes))


def _round(report: LintReport, work: _Work, allowed: frozenset[Safety]) -> bool:
    """Try the fixes of all findings once; say whether any text changed."""
    changed = False
    for finding in in_order(report.findings):
        mark = (finding.code, finding.path or "", finding.key or "")
        if mark in work.tried:
            continue
        for fix in _eligible(finding, allowed):
            work.tried.add(mark)
            if _apply(finding, fix, work):
                changed = True
                break
    return changed


def _eligible(finding: LintFinding, allowed: frozenset[Safety]) -> Iterator[Prescription]:
    return (fix for fix in finding.fixes if fix.safety in allowed and fix.patches)


def _apply(finding: LintFinding, fix: Prescription, work: _Work) -> bool:
    """Make all changes of a fix; none of them where one cannot be made."""
    new: dict[str, LintFile] = {}
    for patch in fix.patches:
        if patch.file is None:
            continue
        file = new.get(patch.file) or work.files.get(patch.file)
        changed = None if file is None else _with(patch, file)
        if changed is None:
            return False
        new[patch.file] = changed
    touched = [path for path, file in new.items() if file.text != work.files[path].text]
    if not touched:
        return False
    work.files.update(new)
    work.applied += (
        Applied(code=finding.code, rule=finding.rule, path=path, title=fix.title)
        for path in touched
    )
    return True


def _with(patch: Patch, file: LintFile) -> LintFile | None:
    """Return a file after a patch; None where it takes none, or could not be read any more."""
    text = edited(file.readings, patch.dialect, patch.settings)
    if text is None or text == file.text:
        return None if text is None else file
    after = read_text(file, text)
    lost = after.fault is not None or after.dialect != file.dialect
    return None if lost else after
