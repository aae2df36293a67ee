"""`oomdoctor estimate`: the peak of a job before it runs, what it is made of, where it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.estimate_options import entry_options, job_options, shape_options
from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import output_options, standard_input, talk_options
from oomdoctor.cli.output import hand_over

if TYPE_CHECKING:
    from oomdoctor.model.estimate import Estimate

FORMATS = ("text", "json", "html", "markdown")
FAIL_ON = ("oom", "tight", "never")


class Asked(TypedDict):
    """What the command line asks for beside the flags of the job."""

    configs: tuple[str, ...]
    entry: str | None
    entry_args: tuple[str, ...]
    model: str | None
    gpu: tuple[str, ...]
    engine: str | None
    python: str | None
    what_if: tuple[str, ...]
    alloc_conf: tuple[str, ...]
    table: bool
    batches: str | None
    lengths: str | None
    limits: bool
    fact: tuple[str, ...]
    fail_on: str
    format: str
    output: str | None
    force: bool
    color: str
    width: int | None
    quiet: bool
    verbose: bool


class EstimateCommand(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example('oomdoctor estimate train.yaml --gpu "RTX 4090"', "does this job fit?"),
        Example(
            "oomdoctor estimate --model meta-llama/Llama-2-7b-hf --method lora --seq 2048",
            "without a config: a model by name, or the path of its config.json",
        ),
        Example(
            "oomdoctor estimate train.yaml --gpu 24GiB --what-if batch=2 --what-if method=qlora",
            "the same job with something changed, side by side",
        ),
        Example(
            "oomdoctor estimate train.yaml --gpu A100-80GB --table -f html -o peak.html",
            "every batch and length as a heat map",
        ),
    )


@click.command("estimate", cls=EstimateCommand)
@job_options
@shape_options
@entry_options
@click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    default="never",
    show_default=True,
    help="Exit 1 if a card that is named gets this verdict or a worse one.",
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
    """Predict the peak of a job: what it is made of, when it comes, and which cards it fits.

    CONFIG is a training or serving config, a script, or a model's config.json; flags outrank it.
    Where torch is installed the model's own code is traced on tensors without memory, no weights
    and no card are needed, and the allocations are put through a model of PyTorch's allocator;
    elsewhere a formula speaks, and the answer says so. Nothing in a file is ever executed, but for
    the function that --entry names.
    """
    asked = cast("Asked", values)
    made = _estimated(values, asked)
    hand_over(
        _rendered(made, asked), path=asked["output"], force=asked["force"], quiet=asked["quiet"]
    )
    return int(_exit(made, asked))


def _estimated(values: dict[str, object], asked: Asked) -> Estimate:
    if asked["entry"] is None and not asked["entry_args"]:
        from oomdoctor.cli.estimate_run import estimated

        return estimated(values, stdin=standard_input())
    from oomdoctor.cli.estimate_entry import estimated_entry

    return estimated_entry(values)


def _rendered(made: Estimate, asked: Asked) -> str:
    if asked["format"] == "json":
        from oomdoctor.render.estimate_json import to_json

        return to_json(made)
    from oomdoctor.cli.pages import written
    from oomdoctor.render.estimate_page import estimate_page

    return written(estimate_page(made), asked)


def _exit(made: Estimate, asked: Asked) -> ExitCode:
    bad = {"oom": ("oom",), "tight": ("oom", "tight"), "never": ()}[asked["fail_on"]]
    found = asked["gpu"] and any(one.verdict in bad for one in made.verdicts)
    return ExitCode.FINDINGS if found else ExitCode.DONE
