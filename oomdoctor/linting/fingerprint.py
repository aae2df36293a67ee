"""What tells that a finding is the same one as yesterday's, though its line has moved.

Rule, file and setting make it; the line's number does not. Where a finding is about no setting,
the text of its line stands for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.linting.places import stable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from oomdoctor.model.lint import FileReport, LintFinding

LENGTH = 32  # hexadecimal digits: 128 bits


def subject(finding: LintFinding) -> str:
    """Return what a finding is about, in words that stay when lines move."""
    if finding.key:
        return finding.key
    if finding.source_line:
        return " ".join(finding.source_line.split())
    return " ".join(finding.quotes[0].text.split()) if finding.quotes else ""


def fingerprint(finding: LintFinding, *, path: str, root: str) -> str:
    """Return the fingerprint of a finding; `path` is its file's where it names none itself."""
    from hashlib import sha256

    where = stable(finding.path or path, root)
    parts = "\0".join((finding.code, where, subject(finding)))
    return sha256(parts.encode("utf-8", errors="surrogatepass")).hexdigest()[:LENGTH]


def numbered(
    file: FileReport, findings: Iterable[LintFinding], *, root: str
) -> Iterator[tuple[LintFinding, str, int]]:
    """Yield findings with their fingerprint and which of its kind each is, from 1 on."""
    seen: dict[str, int] = {}
    for finding in findings:
        mark = fingerprint(finding, path=file.path, root=root)
        seen[mark] = seen.get(mark, 0) + 1
        yield finding, mark, seen[mark]
