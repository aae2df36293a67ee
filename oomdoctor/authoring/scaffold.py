"""A template for a new rule: it has the shape of a rule and passes the schema as it stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.rules.schema import CODE, SLUG
from oomdoctor.rules.stored import LINT_FAMILIES, SHARED_FAMILIES
from oomdoctor.rules.words import FAMILIES

if TYPE_CHECKING:
    from pathlib import Path

_CAUSE = """\
cause: {name}                # TODO: an entry of causes.yaml
"""
_TEMPLATE = """\
# yaml-language-server: $schema=../schema/rule.schema.json
schema: 1
code: {code}
name: {name}
{cause}title: "TODO: the problem of {name} in one line"
severity: error
maturity: sandbox
since: 0.1.0
says: "TODO: the verdict in one sentence, with {{oom.requested}} places."

when:
  all:
    - oom.backend in ['cuda', 'hip']
    - oom.requested > 1*GiB

evidence:
  - if: run.step > 50
    seen: {{cause: 0.7, otherwise: 0.3}}
    label: it failed after many steps

explains: oom.requested

fixes:
  - id: todo
    title: "TODO: what to do, imperative"
    safety: safe
    saves: {{low: 0*B, likely: 0.5 * oom.requested, high: oom.requested}}
    advice: "TODO: one imperative sentence, or a patch per dialect."

why: |
  TODO: the mechanism, with numbers.

known_problems: |
  TODO: where the rule can be wrong.

references:
  - https://pytorch.org/docs/stable/notes/cuda.html

tests:
  - name: the typical case
    expect: match
    facts: {{oom.backend: cuda, oom.requested: 2 GiB, run.step: 900}}
    evidence: {{it failed after many steps: true}}
  - name: a small request in the first step
    expect: no_match
    facts: {{oom.backend: cuda, oom.requested: 20 MiB, run.step: 0}}
    evidence: {{it failed after many steps: false}}
  - name: another back end
    expect: no_match
    facts: {{oom.backend: mps, oom.requested: 2 GiB}}
  - name: a message without figures
    expect: unknown
    missing: [oom.requested]
    facts: {{oom.backend: cuda}}
"""


def template(code: str, name: str) -> str:
    """Return the text of a new rule file; UsageError where code or name are malformed."""
    if not re.search(CODE, code):
        families = ", ".join(FAMILIES)
        raise UsageError(f"{code!r} is no rule code", hint=f"a family ({families}) and 3 digits")
    if not re.search(SLUG, name):
        raise UsageError(f"{name!r} is no rule name", hint="lower-case words joined by hyphens")
    cause = "" if code[:4] in LINT_FAMILIES | SHARED_FAMILIES else _CAUSE.format(name=name)
    return _TEMPLATE.format(code=code, name=name, cause=cause)


def write_template(code: str, name: str, directory: Path) -> Path:
    """Write a new rule file below `directory`; an existing code or file is never replaced."""
    text = template(code, name)
    taken = sorted(directory.rglob(f"{code}-*.yaml"))
    if taken:
        raise UsageError(f"{code} is taken by {taken[0]}", hint="choose the next free number")
    path = directory / code[:4] / f"{code}-{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
