"""Check rule files whole: shape, types, names, linter, inline tests, mutation, savings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.authoring.lint import lint_cases, lint_names, lint_rule
from oomdoctor.authoring.mutation import surviving_mutants
from oomdoctor.authoring.selftest import run_tests
from oomdoctor.record import dataclass
from oomdoctor.rules.bundle import read_causes, rule_files, rules_dir
from oomdoctor.rules.shape import RuleSet
from oomdoctor.rules.source import read_rule_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from oomdoctor.rules.nodes import Problem
    from oomdoctor.rules.shape import Cause
    from oomdoctor.rules.source import RuleSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How many rules and tests were checked, and every problem in file order."""

    rules: int
    tests: int
    problems: tuple[Problem, ...]


def check_rules(
    sources: Sequence[RuleSource], *, others: Sequence[RuleSource], causes: Mapping[str, Cause]
) -> Report:
    """Check `sources`; `others` are the rules that they are ranked against and may clash with."""
    problems = [problem for source in sources for problem in source.problems]
    chosen = {source.path for source in sources}
    everything = (*(source for source in others if source.path not in chosen), *sources)
    problems += [p for p in lint_names(everything) if p.location.path in chosen]
    rules = tuple(source.rule for source in everything if source.rule is not None)
    known = tuple(rule for rule in rules if rule.cause is None or rule.cause in causes)
    ruleset = RuleSet(rules=known, causes=causes)
    for source in sources:
        problems += _check_one(source, ruleset)
    order = sorted(set(problems), key=lambda p: (p.location.path, p.location.line or 0, str(p)))
    tests = sum(len(source.tests) for source in sources)
    return Report(rules=len(sources), tests=tests, problems=tuple(order))


def _check_one(source: RuleSource, ruleset: RuleSet) -> Iterable[Problem]:
    if source.rule is None:
        return
    yield from lint_rule(source, ruleset.causes)
    run = run_tests(source, ruleset=ruleset)
    yield from run.problems
    yield from lint_cases(source, run.cases)
    if not run.problems:
        yield from surviving_mutants(source.rule, run.cases, source.places)


def check_paths(paths: Sequence[str]) -> int:
    """Check files or directories (all rules where none is given), print, return an exit code."""
    home = rules_dir()
    everything = [read_rule_file(path) for path in rule_files(home)]
    causes = read_causes(home)
    wanted = [path for given in paths for path in _files(Path(given))]
    by_path = {Path(source.path).resolve(): source for source in everything}
    sources = [by_path.get(path.resolve()) or read_rule_file(path) for path in wanted] or everything
    report = check_rules(sources, others=everything, causes=causes)
    lines = [f"{problem}\n" for problem in report.problems]
    lines.append(
        f"{report.rules} rules, {report.tests} tests: {len(report.problems) or 'no'} problems\n"
    )
    sys.stdout.writelines(lines)
    return 1 if report.problems else 0


def _files(path: Path) -> list[Path]:
    return rule_files(path) if path.is_dir() else [path]
