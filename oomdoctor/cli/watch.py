"""`oomdoctor watch`: whether the memory of what runs grows, how, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import output_options
from oomdoctor.cli.run_options import seconds_of

if TYPE_CHECKING:
    from oomdoctor.cli.watch_alerts import Condition


class Asked(TypedDict):
    """What the command line asks for."""

    target: str | None
    gpu: int | None
    folder: str | None
    once: bool
    as_json: bool
    every: float
    most_seconds: float | None
    fail_on: tuple[Condition, ...]
    alert_file: str | None
    alert_command: str | None
    format: str
    output: str | None
    force: bool
    color: str
    width: int | None
    quiet: bool


def conditions(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[Condition, ...]:
    """Return what `leak`, `growth` and `oom-in=TIME` stand for."""
    if not given:
        return ()
    from oomdoctor.cli.watch_alerts import condition

    found = []
    for text in given:
        one = condition(text)
        if one is None:
            raise click.BadParameter(f"{text!r} is none of leak, growth, oom-in=TIME (such as 30m)")
        found.append(one)
    return tuple(found)


class Watch(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example("oomdoctor watch", "the run that is being recorded, or the process on the card"),
        Example("oomdoctor watch 4711", "a process and its children, without a recorder"),
        Example("oomdoctor watch last --once", "a run that is over: when could one have known?"),
        Example("oomdoctor watch last -f html -o growth.html", "its curves, to pass on"),
        Example("oomdoctor watch 4711 --fail-on leak --fail-on oom-in=30m", "end with status 1"),
    )


@click.command("watch", cls=Watch)
@click.argument("target", metavar="[PID|RUN]", required=False)
@click.option("--gpu", metavar="N", type=click.IntRange(min=0), help="All processes on this card.")
@click.option(
    "--folder",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Where runs are recorded.  [default: OOMDOCTOR_RUNS, else .oomdoctor/runs]",
)
@click.option("--once", is_flag=True, help="Look once, print what there is to say, and end.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON for each look.")
@click.option(
    "--every",
    metavar="TIME",
    callback=lambda _context, _parameter, given: seconds_of(given),
    default="1s",
    show_default=True,
    help="The time between two looks.",
)
@click.option(
    "--for",
    "most_seconds",
    metavar="TIME",
    callback=lambda _context, _parameter, given: None if given is None else seconds_of(given),
    help="End after so long.",
)
@click.option(
    "--fail-on",
    multiple=True,
    metavar="WHAT",
    callback=conditions,
    help="End with status 1 at a leak, at any growth, or where memory is full within a time "
    "(oom-in=30m); may be given again.",
)
@click.option(
    "--alert-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Append each alert to this file as a line of JSON.",
)
@click.option(
    "--alert-command",
    metavar="COMMAND",
    help="Call this with each alert as JSON on its input; no shell reads it.",
)
@click.option(
    "-f",
    "--format",
    type=click.Choice(["text", "markdown", "html"]),
    default="text",
    show_default=True,
    help="How the last page is written.",
)
@output_options
@click.option("-q", "--quiet", is_flag=True, help="No screen; only what there is to say at last.")
def command(**values: object) -> int:
    """Watch memory of a process, a card or a recorded run: does it grow, and until when?

    Without a target it is the run that is being recorded, else the one process that uses a card. A
    run's steps are known from its recorder; of any other process what is seen from outside. A run
    that is over is read at once. Alerts are leaks, unless --fail-on names something else.
    """
    from oomdoctor.cli.watch_run import watch

    return watch(cast("Asked", values))
