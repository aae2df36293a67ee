"""`oomdoctor plan`: the settings that fit a model on a card, best quality first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.estimate_options import job_options
from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import output_options, standard_input, talk_options
from oomdoctor.cli.output import hand_over

if TYPE_CHECKING:
    from oomdoctor.model.estimate import FitPlan

FORMATS = ("text", "json", "html", "markdown")


class Asked(TypedDict):
    """What the command line asks for beside the flags of the job."""

    gpu: tuple[str, ...]
    engine: str | None
    python: str | None
    format: str
    output: str | None
    force: bool
    color: str
    width: int | None
    quiet: bool
    verbose: bool


class PlanCommand(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example(
            'oomdoctor plan --model meta-llama/Llama-2-7b-hf --gpu "RTX 4090" --seq 2048',
            "how can this model be trained on this card?",
        ),
        Example(
            "oomdoctor plan train.yaml --gpu 24GiB --method lora",
            "the same for a job whose method is settled",
        ),
    )


@click.command("plan", cls=PlanCommand)
@job_options
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
    """Find the settings with which a model can be trained on a card, best quality first.

    What is trained, its precision, the adapter, the micro-batch and checkpointing are varied,
    unless a flag settles them; everything else is as CONFIG and flags say. The formula looks
    through all of them, and where torch is installed the chosen ones are simulated.
    """
    from oomdoctor.cli.plan_run import planned

    asked = cast("Asked", values)
    made = planned(values, stdin=standard_input())
    hand_over(
        _rendered(made, asked), path=asked["output"], force=asked["force"], quiet=asked["quiet"]
    )
    return int(ExitCode.DONE)


def _rendered(made: FitPlan, asked: Asked) -> str:
    if asked["format"] == "json":
        from oomdoctor.render.estimate_json import plan_json

        return plan_json(made)
    from oomdoctor.cli.pages import written
    from oomdoctor.render.plan_page import plan_page

    return written(plan_page(made), asked)
