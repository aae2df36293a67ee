"""Comments in a config that hold findings back.

    fp16: true   # oomdoctor: ignore[COR2001] this card has no bf16
    # oomdoctor: ignore[fp16-and-bf16, MEM1] for the line below
    # oomdoctor: ignore-file[KEY3] the whole file; stands above the first setting

They name rules by code, start of a code, or name; a reason is wanted. A comment that held nothing
back, names no rule, or gives no reason is told as a note.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.linting.codes import names_rule, split
from oomdoctor.model.lint import Suppressed
from oomdoctor.record import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from oomdoctor.model.lint import FileReport, LintFinding

MARK = "oomdoctor:"
_COMMENTS = ("#", "//", '"#', "<!--")
# what a notebook's JSON and a closing comment put behind the reason
_ENDS = ("-->", "*/", '\\n",', '\\n"', '",', '"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """One comment: where it stands, which rules it names, which line it is for (None: the file)."""

    line: int
    names: tuple[str, ...]
    target: int | None
    reason: str


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(
        r"(?:#|//|<!--)\s*oomdoctor:\s*ignore(?P<file>-file)?(?![\w-])\s*"
        r"(?P<named>\[(?P<names>[^\]\n]*)\])?\s*(?P<reason>[^\n]*)",
        re.IGNORECASE,
    )


def speaks(text: str) -> bool:
    """Say whether a text may hold such a comment."""
    return MARK in text.lower()


def read(text: str) -> tuple[tuple[Suppression, ...], tuple[str, ...]]:
    """Return the suppressions of a file, and what is wrong with those that cannot be used.

    A remark starts with its line number, as `3: ...`.
    """
    if not speaks(text):
        return (), ()
    found: list[Suppression] = []
    remarks: list[str] = []
    lines = text.split("\n")
    first = next((at for at, row in enumerate(lines, start=1) if _says_something(row)), len(lines))
    for number, row in enumerate(lines, start=1):
        hit = _pattern().search(row) if MARK in row.lower() else None
        if hit is None:
            continue
        names = split(hit["names"] or "")
        if not names:
            remarks.append(f"{number}: `ignore` names no rule: write `ignore[CODE] reason`")
            continue
        whole = bool(hit["file"])
        if whole and number > first:
            remarks.append(f"{number}: `ignore-file` must stand above the first setting")
            continue
        target = None if whole else _target(lines, number, alone=not row[: hit.start()].strip(' "'))
        reason = _reason(hit["reason"])
        found.append(Suppression(line=number, names=names, target=target, reason=reason))
    return tuple(found), tuple(remarks)


def _says_something(row: str) -> bool:
    text = row.strip()
    return bool(text) and not text.startswith((*_COMMENTS, "---", "%", "{", "[")) and text != '"""'


def _target(lines: Sequence[str], number: int, *, alone: bool) -> int:
    """Return the line that a comment is for: its own, or the next one that is no comment."""
    if not alone:
        return number
    for at in range(number, len(lines)):
        text = lines[at].strip()
        if text and not text.startswith(_COMMENTS):
            return at + 1
    return number


def _reason(text: str) -> str:
    reason = text.strip()
    for end in _ENDS:
        reason = reason.removesuffix(end).rstrip()
    return reason.lstrip(":-").strip()


def applied(
    file: FileReport,
    text: str,
    *,
    is_open: Callable[[str], bool] = lambda _: False,
    known: Mapping[str, str] | None = None,
) -> FileReport:
    """Hold back the findings that comments in the file name, and note what is odd about these.

    `is_open` says for a name in a comment whether its rule was not judged: then nobody can say
    that the comment is of no use. `known` maps names of rules to codes, to recognise slips.
    """
    suppressions, remarks = read(text)
    notes = [f"{file.path}:{remark}" for remark in remarks]
    if not suppressions:
        return replace(file, notes=(*file.notes, *notes)) if notes else file
    kept: list[LintFinding] = []
    held: list[Suppressed] = []
    used: set[tuple[int, str]] = set()
    for finding in file.findings:
        hit = next(_naming(suppressions, finding, file.path), None)
        if hit is None:
            kept.append(finding)
            continue
        one, name = hit
        used.add((one.line, name))
        held.append(Suppressed(finding=finding, how="comment", reason=one.reason or None))
    notes += _odd(file.path, suppressions, used, is_open=is_open, known=known)
    return replace(
        file,
        findings=tuple(kept),
        suppressed=(*file.suppressed, *held),
        notes=(*file.notes, *notes),
    )


def _naming(
    suppressions: Iterable[Suppression], finding: LintFinding, path: str
) -> Iterator[tuple[Suppression, str]]:
    """Yield the suppressions that hold a finding back, with the name by which they do.

    A finding about two settings may be held back at either of them.
    """
    lines = {finding.line, *(quote.line for quote in finding.quotes if quote.artifact == path)}
    for one in suppressions:
        if one.target is None or one.target in lines:
            for name in one.names:
                if names_rule(name, code=finding.code, rule=finding.rule):
                    yield one, name


def _odd(
    path: str,
    suppressions: Iterable[Suppression],
    used: set[tuple[int, str]],
    *,
    is_open: Callable[[str], bool],
    known: Mapping[str, str] | None,
) -> list[str]:
    notes = []
    for one in suppressions:
        where = f"{path}:{one.line}"
        unused = [name for name in one.names if (one.line, name) not in used]
        for name in unused:
            slip = _slip(name, known)
            if slip is not None:
                notes.append(f"{where}: `ignore[{name}]` names no rule{slip}")
            elif not is_open(name):
                notes.append(f"{where}: `ignore[{name}]` holds nothing back: take it away")
        if not one.reason and len(unused) < len(one.names):
            names = ", ".join(name for name in one.names if name not in unused)
            notes.append(f"{where}: `ignore[{names}]` gives no reason: write one behind it")
    return notes


def _slip(name: str, known: Mapping[str, str] | None) -> str | None:
    """Return what to say of a name that no rule has; None where one has it or nobody knows."""
    if not known or any(names_rule(name, code=code, rule=rule) for rule, code in known.items()):
        return None
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    near = near or get_close_matches(name.upper(), known.values(), n=1, cutoff=0.8)
    return f": did you mean `{near[0]}`?" if near else ""
