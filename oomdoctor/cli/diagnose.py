"""`oomdoctor diagnose`: logs, tables and configs in, causes with evidence and fixes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import (
    SEVERITIES,
    SHARED,
    check_inputs,
    codes_of,
    input_options,
    is_run,
    is_snapshot,
    output_options,
    rule_options,
    selection_options,
    standard_input,
    talk_options,
)
from oomdoctor.cli.output import say, theme_for, write_result

if TYPE_CHECKING:
    from oomdoctor.model.plan import Diagnosis

ANSWERED = ("cause", "not_gpu_oom")


class Asked(TypedDict):
    """What the command line asks for."""

    files: tuple[str, ...]
    config: tuple[str, ...]
    snapshot: tuple[str, ...]
    fact: tuple[str, ...]
    format: str
    fail_on: str | None
    explain: bool
    next: bool
    ask: bool
    resume: str | None
    simulate: bool
    top: int
    rules: tuple[str, ...]
    preview: bool
    strict_rules: bool
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    output: str | None
    force: bool
    redact: bool | None
    color: str
    width: int | None
    quiet: bool
    verbose: bool


class Diagnose(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example("oomdoctor diagnose crash.log --config train.yaml", "a log and its config"),
        Example("oomdoctor diagnose crash.log --snapshot oom.pickle", "a log and a snapshot"),
        Example("nvidia-smi | oomdoctor diagnose crash.log -", "a log and a table"),
        Example("oomdoctor diagnose logs/ --format json -o diagnosis.json", "for scripts"),
        Example(
            "oomdoctor diagnose crash.log --ask", "a short interview where the log says little"
        ),
        Example("oomdoctor diagnose crash.log --fact train.micro_batch=4 --explain", "say more"),
    )


@click.command("diagnose", cls=Diagnose)
@input_options
@click.option(
    "--snapshot",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="A memory snapshot of PyTorch; may be given again.",
)
@click.option(
    "-f",
    "--format",
    type=click.Choice(["text", "json", "markdown", "html"]),
    default="text",
    show_default=True,
    help="How the answer is written.",
)
@click.option(
    "--redact/--no-redact",
    default=None,
    help="Replace names of people and machines, addresses, secrets.  [default: in markdown, html]",
)
@click.option("--next", is_flag=True, help="Only what to measure next.")
@click.option("--ask", is_flag=True, help="Ask what the inputs leave open, best question first.")
@click.option(
    "--resume",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Go on with the interview that was left there.",
)
@click.option(
    "--simulate",
    is_flag=True,
    help="Trace the job of the configs (torch is needed): name the request, judge the fixes.",
)
@click.option("--explain", is_flag=True, help="The full chain: gates, weights, facts, all fixes.")
@click.option(
    "--top",
    type=click.IntRange(1, 8),
    default=3,
    show_default=True,
    metavar="N",
    help="Causes shown with their evidence (JSON always has all).",
)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    help="Exit 1 if a finding is at least this severe.",
)
@selection_options
@rule_options
@output_options
@talk_options
def command(**values: object) -> int:
    """Say which kind of out-of-memory the inputs show, why, and what to change.

    FILE is a log, an nvidia-smi table, a memory summary or snapshot, a config or a script: what it
    is gets recognised by its content. DIR stands for the text files in it, or for the run that
    `oomdoctor run` recorded there; - for standard input. Nothing in an input is ever executed, and
    nothing leaves this machine.
    """
    asked = cast("Asked", values)
    needed = not (asked["fact"] or asked["ask"] or asked["resume"] is not None)
    check_inputs([*asked["files"], *asked["config"], *asked["snapshot"]], needed=needed)
    redact = asked["redact"] or (asked["redact"] is None and asked["format"] in SHARED)
    if redact:
        from oomdoctor.render.redact import Names

        names = Names()
        with names.learned():
            diagnosis = _diagnose(asked)
        diagnosis = names.out_of(diagnosis)
    else:
        diagnosis = _diagnose(asked)
    write_result(_rendered(diagnosis, asked), path=asked["output"], force=asked["force"])
    _warn(diagnosis, asked)
    return int(exit_code(diagnosis, fail_on=asked["fail_on"], strict=asked["strict_rules"]))


def _diagnose(asked: Asked) -> Diagnosis:
    if asked["ask"] or asked["resume"] is not None:
        from oomdoctor.cli.ask_command import diagnosed

        return diagnosed(asked)
    if asked["simulate"]:
        from oomdoctor.cli.diagnose_simulated import diagnosed_with_simulation

        return diagnosed_with_simulation(asked)
    if any(map(is_run, asked["files"])):
        from oomdoctor.cli.diagnose_bundle import diagnosed as diagnosed_run

        return diagnosed_run(asked)
    if asked["snapshot"] or any(map(is_snapshot, asked["files"])):
        from oomdoctor.cli.diagnose_snapshot import diagnosed as diagnosed_snapshots

        return diagnosed_snapshots(asked)
    from oomdoctor.cli.progress import bar_for
    from oomdoctor.cli.settings import rule_directories
    from oomdoctor.pipeline import diagnose

    with bar_for(quiet=asked["quiet"]) as bar:
        return diagnose(
            asked["files"],
            config=asked["config"] or None,
            facts=asked["fact"],
            rules=(*rule_directories(), *asked["rules"]),
            preview=asked["preview"],
            select=codes_of(asked["select"]),
            ignore=codes_of(asked["ignore"]),
            stdin=standard_input(),
            progress=bar,
        )


def _rendered(diagnosis: Diagnosis, asked: Asked) -> str:
    if asked["format"] == "json":
        from oomdoctor.render.json import to_json

        return to_json(diagnosis)
    from oomdoctor.render.view import View

    view = View(
        top=asked["top"],
        explain=asked["explain"],
        next_only=asked["next"],
        verbosity=int(asked["verbose"]) - int(asked["quiet"]),
    )
    if asked["format"] == "markdown":
        from oomdoctor.render.markdown import to_markdown

        return to_markdown(diagnosis, view=view)
    if asked["format"] == "html":
        from oomdoctor.render.diagnosis_page import diagnosis_page
        from oomdoctor.render.html import page_html

        return page_html(diagnosis_page(diagnosis, view))
    from oomdoctor.render.text import render

    to_file = asked["output"] not in (None, "-")
    theme = theme_for(color=asked["color"], width=asked["width"], to_file=to_file)
    return render(
        diagnosis, width=theme.width, colour=theme.colour, unicode=theme.unicode, view=view
    )


def _warn(diagnosis: Diagnosis, asked: Asked) -> None:
    """Say on standard error what a reader of standard output alone could miss."""
    if asked["quiet"]:
        return
    if diagnosis.faults:
        codes = ", ".join(sorted({fault.code for fault in diagnosis.faults}))
        say(f"warning: rules that could not be used: {codes}")
    for note in diagnosis.notes:
        if note.startswith("left out: "):
            say(f"warning: {note}")
    if asked["output"] not in (None, "-"):
        say(f"written to {asked['output']}")


def exit_code(diagnosis: Diagnosis, *, fail_on: str | None, strict: bool) -> ExitCode:
    """Return the exit code of an answer: faults first, then findings, then what stays open."""
    if strict and diagnosis.faults:
        return ExitCode.FAULT
    if fail_on is not None and _severest(diagnosis) >= SEVERITIES.index(fail_on):
        return ExitCode.FINDINGS
    return ExitCode.INCONCLUSIVE if diagnosis.answer == "need_evidence" else ExitCode.DONE


def _severest(diagnosis: Diagnosis) -> int:
    """Return the rank of the severest finding that stands, -1 where none does."""
    leading = diagnosis.causes[:1] if diagnosis.answer in ANSWERED else ()
    standing = (*leading, *diagnosis.side_findings)
    return max((SEVERITIES.index(one.severity.value) for one in standing), default=-1)
