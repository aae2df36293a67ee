"""A lint run: files to jobs, jobs to books of facts, books to findings at their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from oomdoctor.linting.book import book_of
from oomdoctor.linting.files import LintFile, paths_in, read_file
from oomdoctor.linting.findings import judge
from oomdoctor.linting.items import PREFIX, items_of
from oomdoctor.linting.jobs import Job, jobs_of
from oomdoctor.linting.naming import check_card, check_rules
from oomdoctor.linting.order import in_order
from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Severity
from oomdoctor.model.lint import FileReport, JobReport, LintReport
from oomdoctor.record import dataclass, replace
from oomdoctor.rules.evaluate import leaves_of
from oomdoctor.rules.stored import LINT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import RuleFault
    from oomdoctor.model.lint import LintFinding
    from oomdoctor.rules.shape import Rule, RuleSet


Known: TypeAlias = "dict[tuple[int, ...], tuple[Job, JobReport, tuple[RuleFault, ...]]]"
"""What was found in a job, by the identities of its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to lint for.

    `together` makes all files one job; `gpu` names the card, `gpus` counts them; `versions` are
    "package==version" texts, `facts` "KEY=VALUE" texts, `extra` facts that were measured (of the
    data, say). `select` and `ignore` are starts of codes or names of rules. `search` looks for
    versions beside the files and in the active environment.
    """

    together: bool = False
    gpu: str | None = None
    gpus: int | None = None
    versions: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    extra: tuple[Fact, ...] = ()
    rules: tuple[str, ...] = ()
    preview: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    search: bool = True


def lint(
    paths: Sequence[str],
    wanted: Wanted | None = None,
    *,
    stdin: BinaryIO | None = None,
    texts: Mapping[str, str] | None = None,
) -> LintReport:
    """Lint files and folders; `texts` stand for the content of files changed in memory."""
    asked = wanted or Wanted()
    given = paths_in(paths)
    held = texts or {}
    files = [read_file(path, stdin=stdin, text=held.get(path)) for path in given]
    return lint_files(files, asked)


def lint_files(
    files: Sequence[LintFile], wanted: Wanted, *, known: Known | None = None
) -> LintReport:
    """Lint files that have been read; `known` holds jobs of files that have not changed since."""
    rules = _split(_ruleset(wanted))
    stated = stated_facts(wanted)
    jobs: list[JobReport] = []
    faults: list[RuleFault] = []
    for job in jobs_of(files, together=wanted.together):
        held = {} if known is None else known
        mark = tuple(map(id, job.files))
        if mark not in held:
            held[mark] = (job, *_report(job, rules, stated, wanted))
        _, report, more = held[mark]
        jobs.append(report)
        faults += more
    return LintReport(
        jobs=tuple(jobs),
        faults=tuple(dict.fromkeys(faults)),
        order=tuple(file.path for file in files),
    )


def stated_facts(wanted: Wanted) -> tuple[Fact, ...]:
    """Return what the command line states: card, number of cards, versions, facts."""
    from oomdoctor.facts.given import parse_possible
    from oomdoctor.linting.versions import parse_versions

    found = [*parse_possible(wanted.facts), *wanted.extra]
    if wanted.gpu is not None:
        check_card(wanted.gpu, found)
        found.append(Fact(key="gpu.name", value=wanted.gpu, source="stated with --gpu"))
    if wanted.gpus is not None:
        found.append(Fact(key="gpu.count", value=wanted.gpus, source="stated with --gpus"))
    return (*found, *parse_versions(wanted.versions))


def lint_rules(wanted: Wanted) -> tuple[Rule, ...]:
    """Return every lint rule, selected or not."""
    from oomdoctor.rules.loader import load_rules

    rules = load_rules(wanted.rules, preview=True, bundles=(LINT,)).rules
    return tuple(rule for rule in rules if rule.cause is None)


def is_used(wanted: Wanted, names: Mapping[str, str], code: str) -> bool:
    """Say whether a rule was selected and not ignored; `names` has the codes by name."""
    from oomdoctor.linting.codes import names_rule

    rule = next((name for name, other in names.items() if other == code), "")

    def meant(asked: Sequence[str]) -> bool:
        return any(names_rule(name, code=code, rule=rule) for name in asked)

    return (not wanted.select or meant(wanted.select)) and not meant(wanted.ignore)


def rule_names(wanted: Wanted) -> dict[str, str]:
    """Return the code of every lint rule by its name."""
    return {rule.name: rule.code for rule in lint_rules(wanted)}


def _ruleset(wanted: Wanted) -> RuleSet:
    from oomdoctor.linting.codes import names_rule
    from oomdoctor.rules.loader import load_rules

    ruleset = load_rules(wanted.rules, preview=wanted.preview, bundles=(LINT,))

    if wanted.select or wanted.ignore:
        codes = rule_names(wanted) | {code.lower(): code for code, _ in ruleset.faults}
        check_rules(wanted.select, codes, where="select")
        check_rules(wanted.ignore, codes, where="ignore")

    def meant(rule: Rule, names: Sequence[str]) -> bool:
        return any(names_rule(name, code=rule.code, rule=rule.name) for name in names)

    kept = tuple(
        rule
        for rule in ruleset.rules
        if rule.cause is None
        and (not wanted.select or meant(rule, wanted.select))
        and not meant(rule, wanted.ignore)
    )
    return replace(ruleset, rules=kept)


def _report(
    job: Job, rules: tuple[RuleSet, RuleSet], stated: Sequence[Fact], wanted: Wanted
) -> tuple[JobReport, tuple[RuleFault, ...]]:
    from oomdoctor.linting.versions import found_versions
    from oomdoctor.reason.understood import understood

    versions = found_versions(job) if wanted.search else ()
    book = book_of(job, given=stated, versions=versions)
    whole, single = rules
    judged = judge(whole, book, job)
    recognised = any(file.dialect is not None for file in job.files)
    told = judged.findings if recognised else ()  # what no framework reads does nothing
    findings = [*told, *_of_items(single, book, job, told)]
    files = tuple(_file(file, findings, number == 0) for number, file in enumerate(job.files))
    report = JobReport(
        files=files,
        understood=understood(book) if recognised else (),
        not_evaluated=judged.not_evaluated if recognised else (),
        conflicts=book.conflicts,
    )
    return report, judged.faults


def _split(ruleset: RuleSet) -> tuple[RuleSet, RuleSet]:
    """Take apart the rules about a job and those about single keys and files."""
    single = tuple(
        rule
        for rule in ruleset.rules
        if any(key.startswith(PREFIX) for leaf in leaves_of(rule.when) for key in leaf.reads)
    )
    whole = tuple(rule for rule in ruleset.rules if rule not in single)
    return replace(ruleset, rules=whole), replace(ruleset, rules=single, faults=())


def _of_items(
    single: RuleSet, book: FactBook, job: Job, others: Sequence[LintFinding]
) -> list[LintFinding]:
    """Judge single keys and files; a place that a rule calls an error needs no second word."""
    told = {(one.path, one.line) for one in others if one.severity is Severity.ERROR}
    found: list[LintFinding] = []
    for item in items_of(job, book):
        places = {(quote.artifact, quote.line) for fact in item.facts for quote in fact.quotes}
        if told.isdisjoint(places):
            found += judge(single, book.add(item.facts), job).findings
    return found


def _file(file: LintFile, findings: Sequence[LintFinding], is_first: bool) -> FileReport:
    """Return a file with its findings; those that no file says stand with the job's first one."""
    own = [one for one in findings if one.path == file.path or (one.path is None and is_first)]
    notes = file.remarks
    if file.fault is not None and all(one.rule != "unreadable-file" for one in own):
        notes = (*notes, f"{file.fault.location or file.path}: not read: {file.fault.message}")
    return FileReport(
        path=file.path,
        dialect=file.dialect,
        findings=tuple(in_order(own)),
        notes=notes,
    )
