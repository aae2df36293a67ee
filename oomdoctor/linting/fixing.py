"""Apply the fixes of findings to the text of files, in memory, until nothing more changes.

Each finding's first fix that may be applied is tried once. After each round the files are linted
anew, since a fix may settle other findings or make room for one.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from oomdoctor.configs.difference import unified
from oomdoctor.configs.patch import edited
from oomdoctor.linting.files import read_file
from oomdoctor.linting.order import in_order
from oomdoctor.linting.run import lint_files
from oomdoctor.model.enums import Safety
from oomdoctor.record import dataclass

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
    before: Mapping[str, str]
    after: Mapping[str, str]
    applied: tuple[Applied, ...] = ()

    @property
    def changed(self) -> tuple[str, ...]:
        """Return the paths of the files that differ."""
        return tuple(path for path, text in self.after.items() if text != self.before[path])

    @property
    def diff(self) -> str:
        """Return the unified diff of all changes."""
        return "".join(unified(self.before[path], self.after[path], path) for path in self.changed)


@dataclasses.dataclass(slots=True, kw_only=True)
class _Work:
    """The state of a run: texts as they are now, what was done, what was tried."""

    texts: dict[str, str]
    applied: list[Applied] = dataclasses.field(default_factory=list)
    tried: set[tuple[str, str, str]] = dataclasses.field(default_factory=set)


def fixed(
    files: Sequence[LintFile],
    wanted: Wanted,
    *,
    allowed: frozenset[Safety] = SAFE,
    decided: Callable[[LintReport], LintReport] = lambda report: report,
) -> Fixed:
    """Fix what may be fixed; `decided` takes away what the project holds back."""
    readable = [file for file in files if file.fault is None and file.path != "-"]
    before = {file.path: file.text for file in readable}
    work = _Work(texts=dict(before))
    report = decided(lint_files(files, wanted))
    for _ in range(ROUNDS):
        if not _round(report, work, allowed):
            break
        again = [read_file(file.path, text=work.texts.get(file.path)) for file in files]
        report = decided(lint_files(again, wanted))
    return Fixed(report=report, before=before, after=work.texts, applied=tuple(work.applied))


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
    new = dict(work.texts)
    touched: list[str] = []
    for patch in fix.patches:
        if patch.file is None:
            continue
        text = _with(patch, new)
        if text is None:
            return False
        if text != new.get(patch.file):
            touched.append(patch.file)
            new[patch.file] = text
    if not touched:
        return False
    work.texts.update(new)
    work.applied += (
        Applied(code=finding.code, rule=finding.rule, path=path, title=fix.title)
        for path in touched
    )
    return True


def _with(patch: Patch, texts: Mapping[str, str]) -> str | None:
    path = patch.file
    if path is None or path not in texts:
        return None
    file = read_file(path, text=texts[path])
    return None if file.fault else edited(file.readings, patch.dialect, patch.settings)
