"""How people name rules: by code, by the start of a code, or by the rule's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.model.lint import LintFinding


def split(text: str) -> tuple[str, ...]:
    """Return the names in a comma-separated list."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def names_rule(name: str, *, code: str, rule: str) -> bool:
    """Say whether `name` means the rule: its code or the start of it in any case, or its name."""
    return code.upper().startswith(name.upper()) or rule == name.lower()


def names_finding(names: Iterable[str], finding: LintFinding) -> bool:
    """Say whether one of the names means the rule of a finding."""
    return any(names_rule(name, code=finding.code, rule=finding.rule) for name in names)
