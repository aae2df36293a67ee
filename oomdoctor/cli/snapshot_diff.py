"""`oomdoctor snapshot diff`: what one snapshot holds more than another."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import output_options, talk_options
from oomdoctor.cli.output import write_result
from oomdoctor.cli.snapshot_options import format_option, moment_options

if TYPE_CHECKING:
    from oomdoctor.snapshot.balance import Balance


class Asked(TypedDict):
    """What the command line asks for."""

    before: str
    after: str
    at: str
    device: int | None
    number: int
    format: str
    output: str | None
    force: bool
    color: str
    width: int | None
    quiet: bool
    verbose: bool


class Diff(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example("oomdoctor snapshot diff before.pickle after.pickle", "what the peak holds more"),
        Example("oomdoctor snapshot diff step10.pickle step20.pickle --at end", "what piled up"),
    )


@click.command("diff", cls=Diff)
@click.argument("before", metavar="A", type=click.Path(exists=True, dir_okay=False))
@click.argument("after", metavar="B", type=click.Path(exists=True, dir_okay=False))
@moment_options
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
    """Say which lines hold more or less in B than in A, at the same moment of both.

    Cards are compared by their numbers. Exits with 1 where something changed.
    """
    from oomdoctor.render.snapshot_diff import Compared, diff_json, diff_page
    from oomdoctor.snapshot.difference import changes_between

    asked = cast("Asked", values)
    before, after = (_balances(path, asked) for path in (asked["before"], asked["after"]))
    found = [
        Compared(one, before[one], after[one], changes_between(before[one], after[one]))
        for one in before
        if one in after
    ]
    if asked["format"] == "json":
        shown = diff_json(found, asked["number"])
    else:
        from oomdoctor.cli.pages import written

        names = (asked["before"], asked["after"])
        shown = written(diff_page(found, names, asked["number"]), asked)
    write_result(shown, path=asked["output"], force=asked["force"])
    changed = any(one.changes for one in found)
    return int(ExitCode.FINDINGS if changed else ExitCode.DONE)


def _balances(path: str, asked: Asked) -> dict[int, Balance]:
    from oomdoctor.snapshot.balance import balance_at
    from oomdoctor.snapshot.moments import moments_of
    from oomdoctor.snapshot.reading import read_snapshot

    snapshot = read_snapshot(path)
    return {
        one.device.number: balance_at(one.lives, one.event, snapshot.stacks)
        for one in moments_of(snapshot, asked["at"], asked["device"])
    }
