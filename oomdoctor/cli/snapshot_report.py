"""`oomdoctor snapshot report`: the verdicts on a recorded run."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import output_options, talk_options
from oomdoctor.cli.output import write_result

if TYPE_CHECKING:
    from oomdoctor.snapshot.report import SnapshotReport


class Asked(TypedDict):
    """What the command line asks for."""

    file: str
    format: str
    output: str | None
    force: bool
    color: str
    width: int | None
    quiet: bool
    verbose: bool


class Report(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example("oomdoctor snapshot report snapshot.pickle", "what grew, what was held, and why"),
        Example("oomdoctor snapshot report snapshot.pickle -f html -o report.html", "to pass on"),
        Example("oomdoctor snapshot report snapshot.pickle -f json", "for a program"),
    )


@click.command("report", cls=Report)
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "-f",
    "--format",
    type=click.Choice(["text", "json", "markdown", "html"]),
    default="text",
    show_default=True,
    help="How the answer is written.",
)
@output_options
@talk_options
def command(**values: object) -> int:
    """Say which line leaks, what was held at the peak, and whether memory was fragmented.

    FILE is the pickle of torch.cuda.memory._dump_snapshot (nothing in it is run), or the same as
    JSON; both may be packed with gzip. Exits with 1 where a line is suspected of a leak, or a
    request failed for fragmentation.
    """
    from oomdoctor.snapshot.reading import read_snapshot
    from oomdoctor.snapshot.report import report_on

    asked = cast("Asked", values)
    report = report_on(read_snapshot(asked["file"]))
    write_result(_rendered(report, asked), path=asked["output"], force=asked["force"])
    found = any(
        one.suspects or (one.fragmentation is not None and one.fragmentation.proven)
        for one in report.devices
    )
    return int(ExitCode.FINDINGS if found else ExitCode.DONE)


def _rendered(report: SnapshotReport, asked: Asked) -> str:
    if asked["format"] == "json":
        from oomdoctor.render.snapshot_json import report_json

        return report_json(report)
    from oomdoctor.cli.pages import written
    from oomdoctor.render.snapshot_page import snapshot_page

    return written(snapshot_page(report, asked["file"]), asked)
