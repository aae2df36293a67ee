"""`oomdoctor confirm`: a cause proven or refuted by the smallest runs that can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.bisect_command import TakesCommand
from oomdoctor.cli.bisect_options import trial_options
from oomdoctor.cli.estimate_options import job_options
from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example
from oomdoctor.cli.options import output_options, standard_input, talk_options
from oomdoctor.cli.output import hand_over, write_result

if TYPE_CHECKING:
    from oomdoctor.cli.confirm_run import Outcome
    from oomdoctor.model.confirm import Confirmed

FORMATS = ("text", "json", "html", "markdown")


class Asked(TypedDict):
    """What the command line asks for beside what `bisect` knows."""

    case: str
    backend: str | None
    python: str | None
    treated: str | None
    minimal: bool
    write_config: str | None
    top: int
    dry_run: bool
    resume: bool
    max_trials: int | None
    max_seconds: float | None
    trial_seconds: float
    format: str
    output: str | None
    force: bool
    color: str
    width: int | None
    quiet: bool
    verbose: bool


class ConfirmCommand(TakesCommand):
    """The command with its examples."""

    examples = (
        Example("oomdoctor confirm diagnosis.json train.yaml", "the leading causes, on the card"),
        Example(
            "oomdoctor confirm attention-not-flash train.yaml --backend simulate --gpu 'RTX 4090'",
            "one cause, without a card",
        ),
        Example(
            "oomdoctor confirm missing-no-grad --evaluate -- python train.py",
            "in a script as it is: the change is injected",
        ),
        Example(
            "oomdoctor confirm loss-graph-retained --treated 'python mended.py' -- python train.py",
            "with your own mended command",
        ),
        Example(
            "oomdoctor confirm diagnosis.json train.yaml --minimal",
            "which changes are needed, and no more?",
        ),
    )


@click.command("confirm", cls=ConfirmCommand)
@click.argument("case", metavar="DIAGNOSIS.json|CAUSE")
@job_options
@trial_options
@click.option(
    "--write-config",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="With --minimal: write the configs with the changes that are needed to a folder.",
)
@click.option(
    "--minimal",
    is_flag=True,
    help="Find the cheapest set of changes that removes the failure: quality, speed, memory.",
)
@click.option(
    "--treated",
    metavar="COMMAND",
    help="Your own changed command, in the place of a change of ours.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="N",
    help="Of a diagnosis, the causes to put to the test.",
)
@click.option(
    "-f",
    "--format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How the answer is written.",
)
@output_options
@talk_options
def command(**values: object) -> int:
    """Prove a cause by experiment, or refute it.

    The run as it is has to fail as the log did; the treated run lacks one thing and has to fit; a
    control, changed in a way that must not help, has to fail still. What runs is the job that
    CONFIG and flags describe, or your own command behind --; nothing of yours is changed. The
    verdicts are confirmed, refuted or inconclusive, and change the ranking of the causes.
    """
    asked = cast("Asked", values)
    from oomdoctor.cli.confirm_run import confirmed, planned

    if asked["dry_run"]:
        made = planned(values, stdin=standard_input())
        write_result(_rendered(made, asked), path=asked["output"], force=asked["force"])
        return int(ExitCode.DONE)
    outcome = confirmed(values, stdin=standard_input())
    hand_over(
        _rendered(outcome.made, asked),
        path=asked["output"],
        force=asked["force"],
        quiet=asked["quiet"],
    )
    if outcome.refused is not None:
        raise outcome.refused
    return int(_exit(outcome))


def _exit(outcome: Outcome) -> ExitCode:
    if outcome.interrupted:
        return ExitCode.INTERRUPTED
    settled = any(one.verdict != "inconclusive" for one in outcome.made.confirmations)
    found = outcome.made.minimal is not None and outcome.made.minimal.fits
    return ExitCode.DONE if settled or found else ExitCode.INCONCLUSIVE


def _rendered(made: Confirmed, asked: Asked) -> str:
    if asked["format"] == "json":
        from oomdoctor.render.confirm_json import to_json

        return to_json(made)
    from oomdoctor.cli.pages import written
    from oomdoctor.render.confirm_page import confirm_page

    return written(confirm_page(made), asked)
