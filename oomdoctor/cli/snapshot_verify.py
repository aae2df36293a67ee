"""`oomdoctor snapshot verify`: the allocator model against a recorded run."""

from __future__ import annotations

from typing import TypedDict, cast

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.output import write_result


class Asked(TypedDict):
    """What the command line asks for."""

    file: str
    format: str
    output: str | None
    force: bool


class Verify(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example("oomdoctor snapshot verify snapshot.pickle", "does the model place all alike?"),
        Example("oomdoctor snapshot verify snapshot.pickle -f json", "for a program"),
    )


@click.command("verify", cls=Verify)
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "-f",
    "--format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How the answer is written.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help="Write to this file instead of standard output.",
)
@click.option("--force", is_flag=True, help="Overwrite the file of --output.")
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
def command(**values: object) -> int:
    """Replay a snapshot through the allocator model and compare every decision.

    FILE is the pickle of torch.cuda.memory._dump_snapshot (nothing in it is run), or the same as
    JSON; both may be packed with gzip. Exits with 1 where an address or a segment differs.
    """
    from oomdoctor.render.snapshot import replay_json, replay_text
    from oomdoctor.snapshot.reading import read_snapshot
    from oomdoctor.snapshot.replay import verify

    asked = cast("Asked", values)
    replay = verify(read_snapshot(asked["file"]))
    shown = replay_json(replay) if asked["format"] == "json" else replay_text(replay)
    write_result(shown, path=asked["output"], force=asked["force"])
    return int(ExitCode.DONE if replay.equal else ExitCode.FINDINGS)
