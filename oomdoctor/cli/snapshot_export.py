"""`oomdoctor snapshot export`: a snapshot for other programs."""

from __future__ import annotations

from typing import TypedDict, cast

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.output import write_result
from oomdoctor.cli.snapshot_options import moment_options


class Asked(TypedDict):
    """What the command line asks for."""

    file: str
    to: str
    at: str
    device: int | None
    output: str | None
    force: bool
    verbose: bool


class Export(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example(
            "oomdoctor snapshot export snapshot.pickle --to speedscope -o peak.json",
            "a flame graph of the peak at speedscope.app",
        ),
        Example("oomdoctor snapshot export snapshot.pickle --to csv", "one row for each block"),
    )


@click.command("export", cls=Export)
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--to",
    type=click.Choice(["json", "csv", "folded", "speedscope"]),
    required=True,
    help="csv and json: all blocks; folded and speedscope: the stacks at one moment.",
)
@moment_options
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help="Write to this file instead of standard output.",
)
@click.option("--force", is_flag=True, help="Overwrite the file of --output.")
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
def command(**values: object) -> int:
    """Write the blocks of a snapshot, or the stacks of what is held, for other programs."""
    asked = cast("Asked", values)
    write_result(_exported(asked), path=asked["output"], force=asked["force"])
    return int(ExitCode.DONE)


def _exported(asked: Asked) -> str:
    from oomdoctor import __version__
    from oomdoctor.snapshot import exporting
    from oomdoctor.snapshot.balance import balance_at
    from oomdoctor.snapshot.moments import moments_of
    from oomdoctor.snapshot.reading import read_snapshot

    snapshot = read_snapshot(asked["file"])
    moments, stacks = moments_of(snapshot, asked["at"], asked["device"]), snapshot.stacks
    if asked["to"] == "csv":
        return exporting.blocks_csv(moments, stacks)
    if asked["to"] == "json":
        return exporting.blocks_json(moments, stacks)
    balances = [(one.device.number, balance_at(one.lives, one.event, stacks)) for one in moments]
    if asked["to"] == "folded":
        return exporting.folded(balances, stacks)
    return exporting.speedscope(balances, stacks, asked["file"], f"oomdoctor {__version__}")
