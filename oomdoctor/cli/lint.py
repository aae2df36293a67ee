"""`oomdoctor lint`: what will break, what it will cost, and the patch, before a run is started."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.lint_options import lint_options
from oomdoctor.cli.options import (
    SEVERITIES,
    check_inputs,
    output_options,
    rule_options,
    standard_input,
    talk_options,
)
from oomdoctor.cli.output import say, write_result
from oomdoctor.errors import OomdoctorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.cli.lint_run import Session
    from oomdoctor.linting.fixing import Fixed
    from oomdoctor.model.lint import LintReport


NEVER = "never"


class Asked(TypedDict):
    """What the command line asks for."""

    files: tuple[str, ...]
    job: bool
    gpu: str | None
    gpus: int | None
    versions: tuple[str, ...]
    data: tuple[str, ...]
    tokenizer: str | None
    fact: tuple[str, ...]
    format: str | None
    diff: bool
    fix: bool
    unsafe: bool
    watch: bool
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    fail_on: str | None
    baseline: str | None
    write_baseline: str | None
    explain: bool
    rules: tuple[str, ...]
    preview: bool
    strict_rules: bool
    output: str | None
    force: bool
    color: str
    width: int | None
    quiet: bool
    verbose: bool


class Lint(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example('oomdoctor lint train.yaml --gpu "RTX 4090"', "does this fit, and is it right?"),
        Example("oomdoctor lint --job train.yaml ds_config.json launch.sh", "files of one job"),
        Example("oomdoctor lint train.yaml --diff", "the safe fixes as a patch"),
        Example("oomdoctor lint configs/ --format sarif -o lint.sarif", "for code scanning"),
        Example("oomdoctor lint train.py --versions transformers==4.36.2", "for old versions"),
    )


@click.command("lint", cls=Lint)
@lint_options
@rule_options
@output_options
@talk_options
def command(**values: object) -> int:
    """Check training and serving configs before launch.

    FILE is a config, a script, a notebook or a launch script of any framework; DIR stands for
    those in it. Each file is a job of its own unless it names another one, or --job is given.
    Nothing in a file is ever executed.
    """
    from oomdoctor.cli.lint_run import Session

    asked = cast("Asked", values)
    check_inputs(asked["files"], what="a config or a script")
    _check(asked)
    session = Session.of(asked, stdin=standard_input())
    if asked["watch"]:
        return _watched(session, asked)
    if asked["fix"] or asked["diff"]:
        return _fixed(session, asked)
    report = session.report()
    if asked["write_baseline"]:
        session.write_baseline(report)
        say(f"baseline written to {asked['write_baseline']}")
        return int(ExitCode.DONE)
    write_result(session.rendered(report), path=asked["output"], force=asked["force"])
    return _exit(report, session, asked)


def _check(asked: Asked) -> None:
    if asked["unsafe"] and not (asked["fix"] or asked["diff"]):
        raise click.UsageError("--unsafe goes with --fix or --diff")
    if asked["fix"] and asked["diff"]:
        raise click.UsageError("--diff shows what --fix would write: give one of them")
    if "-" in asked["files"] and (asked["fix"] or asked["watch"]):
        option = "--fix" if asked["fix"] else "--watch"
        raise click.UsageError(f"{option} needs files: standard input (-) is none")
    if asked["tokenizer"] and not asked["data"]:
        raise click.UsageError("--tokenizer goes with --data")


def _fixed(session: Session, asked: Asked) -> int:
    """Show the fixes as a patch, or write them."""
    outcome = session.fixed(unsafe=asked["unsafe"])
    if asked["diff"]:
        for note in () if asked["quiet"] else outcome.report.notes:
            say(f"note: {note}")
        if isinstance(sys.stdout, TextIOWrapper):  # a patch is of the bytes of the files
            sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
        write_result(outcome.diff, path=asked["output"], force=asked["force"])
        return _exit(outcome.report, session, asked)
    failed = _written(outcome)
    if not asked["quiet"]:
        for one in outcome.applied:
            if one.path not in failed:
                say(f"fixed {one.path}: {one.title} ({one.code} {one.rule})")
    text = session.rendered(outcome.report)
    write_result(text, path=asked["output"], force=asked["force"])
    return int(ExitCode.FAULT) if failed else _exit(outcome.report, session, asked)


def _written(outcome: Fixed) -> set[str]:
    """Write the files that changed; tell of those that could not be written, and return them."""
    return {path for path in outcome.changed if not _is_written(outcome, path)}


def _is_written(outcome: Fixed, path: str) -> bool:
    try:
        outcome.write(path)
    except OomdoctorError as error:
        say(f"error: {error}")
        return False
    return True


def _watched(session: Session, asked: Asked) -> int:
    """Lint again whenever a file is saved, until Ctrl-C."""
    from oomdoctor.linting.watch import Watcher, watch

    def show(_: Sequence[str]) -> None:
        if sys.stdout.isatty():
            sys.stdout.write("\x1b[2J\x1b[3J\x1b[H")
        try:
            shown = session.rendered(session.report())
        except OomdoctorError as error:  # a file that is half written: the next save may do
            say(f"error: {error}")
            return
        write_result(shown, path=asked["output"], force=True)

    watch(Watcher(session.watched), show)
    return int(ExitCode.DONE)


def _exit(report: LintReport, session: Session, asked: Asked) -> int:
    if not asked["quiet"]:
        for fault in report.faults:
            say(f"warning: the rule {fault.code} could not be used: {fault.message}")
        if asked["output"] not in (None, "-"):
            say(f"written to {os.fspath(asked['output'] or '')}")
    if asked["strict_rules"] and report.faults:
        return int(ExitCode.FAULT)
    if session.fail_on == NEVER:
        return int(ExitCode.DONE)
    limit = SEVERITIES.index(session.fail_on)
    severest = max((SEVERITIES.index(one.severity.value) for one in report.findings), default=-1)
    return int(ExitCode.FINDINGS if severest >= limit else ExitCode.DONE)
