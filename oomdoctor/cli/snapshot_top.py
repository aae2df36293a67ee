"""`oomdoctor snapshot top`: who holds the memory at a moment."""

from __future__ import annotations

from typing import TypedDict, cast

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import output_options, talk_options
from oomdoctor.cli.output import write_result
from oomdoctor.cli.snapshot_options import format_option, moment_options


class Asked(TypedDict):
    """What the command line asks for."""

    file: str
    at: str
    device: int | None
    by: str
    number: int
    format: str
    output: str | None
    force: bool
    color: str
    width: int | None
    quiet: bool
    verbose: bool


class Top(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example("oomdoctor snapshot top snapshot.pickle", "the largest holders at the peak"),
        Example("oomdoctor snapshot top snapshot.pickle --at end --by stack", "what stayed"),
    )


@click.command("top", cls=Top)
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@moment_options
@click.option(
    "--by",
    type=click.Choice(["line", "stack", "category"]),
    default="line",
    show_default=True,
    help="What the blocks are added up by.",
)
@click.option(
    "-n",
    "--number",
    metavar="N",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many rows are shown.",
)
@format_option
@output_options
@talk_options
def command(**values: object) -> int:
    """List who holds the memory at the peak, at a failed request, at the end or at an event."""
    from oomdoctor.render.snapshot_top import Held, rows_of, top_json, top_page
    from oomdoctor.snapshot.balance import balance_at
    from oomdoctor.snapshot.moments import moments_of
    from oomdoctor.snapshot.reading import read_snapshot

    asked = cast("Asked", values)
    snapshot = read_snapshot(asked["file"])
    found = []
    for one in moments_of(snapshot, asked["at"], asked["device"]):
        balance = balance_at(one.lives, one.event, snapshot.stacks)
        rows = rows_of(balance, asked["by"], snapshot.stacks)
        found.append(Held(one.device.number, balance, rows))
    if asked["format"] == "json":
        shown = top_json(found, asked["by"], asked["number"])
    else:
        from oomdoctor.cli.pages import written

        shown = written(top_page(found, asked["file"], asked["by"], asked["number"]), asked)
    write_result(shown, path=asked["output"], force=asked["force"])
    return int(ExitCode.DONE)
