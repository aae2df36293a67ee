"""`oomdoctor bisect`: the largest batch or length that runs, found by few trials in processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.bisect_command import TakesCommand
from oomdoctor.cli.bisect_options import OBJECTIVES, trial_options
from oomdoctor.cli.estimate_options import job_options
from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example
from oomdoctor.cli.options import output_options, standard_input, talk_options
from oomdoctor.cli.output import hand_over, say, write_result

if TYPE_CHECKING:
    from oomdoctor.cli.bisect_run import Outcome

FORMATS = ("text", "json", "html", "markdown")
GIT_FLAG = "--git-bisect"
GIT_WRONG = 128  # `git bisect run` gives up at it, where 125 would have it look at every commit


class Asked(TypedDict):
    """What the command line asks for beside the flags of the job."""

    configs: tuple[str, ...]
    model: str | None
    gpu: tuple[str, ...]
    engine: str | None
    python: str | None
    fact: tuple[str, ...]
    axis: tuple[str, ...]
    backend: str | None
    cap: str | None
    edit: tuple[str, ...]
    steps: int
    evaluates: bool
    saves: bool
    objective: str
    headroom: float
    git_bisect: bool
    executor: str | None
    share: bool
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


class BisectCommand(TakesCommand):
    """The command with its examples."""

    examples = (
        Example("oomdoctor bisect train.yaml --axis batch", "the largest batch of a job"),
        Example(
            "oomdoctor bisect --axis batch=1..512 --axis seq=512..32768 --"
            " python train.py --bs {batch} --max_len {seq}",
            "of a script as it is: for each length the largest batch",
        ),
        Example(
            "oomdoctor bisect --axis batch --edit train.yaml:micro_batch_size={batch} --"
            " accelerate launch train.py train.yaml",
            "through an edited copy of its config",
        ),
        Example(
            "oomdoctor bisect train.yaml --axis seq --backend simulate --gpu 'RTX 4090'",
            "without a card: traced and replayed",
        ),
        Example(
            "git bisect run oomdoctor bisect --git-bisect --axis batch=8 --cap 20GiB --"
            " python train.py --bs {batch}",
            "which commit raised memory?",
        ),
    )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; wrong use ends a `git bisect run`, and marks no commit."""
        if GIT_FLAG not in args:
            return super().parse_args(ctx, args)
        try:
            return super().parse_args(ctx, args)
        except click.ClickException as error:
            say(f"error: {error.format_message()}")
            ctx.exit(GIT_WRONG)


@click.command("bisect", cls=BisectCommand)
@job_options
@trial_options
@click.option(
    GIT_FLAG,
    is_flag=True,
    help="One trial that speaks to `git bisect run`: 0 fits, 1 out of memory, 125 cannot tell.",
)
@click.option(
    "--headroom",
    type=click.FloatRange(min=0, max=0.9),
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="Share of the memory that the safe value leaves free.",
)
@click.option(
    "--objective",
    type=click.Choice(OBJECTIVES),
    default="memory",
    show_default=True,
    help="Look for the largest value that fits, or for the fastest one.",
)
@click.option(
    "--axis",
    multiple=True,
    metavar="NAME[=LOW..HIGH[:STEP]]",
    help="What is varied: batch, seq, lora_rank, images, resolution, new_tokens, workers,"
    " gpu_memory_utilization, or any {name} of the command. Two give a frontier.",
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
    """Find the exact batch or length at which memory runs out, with few trials.

    Each trial is a fresh process: of the job that CONFIG and flags describe, with random weights
    and rows of the full length, or of your own command behind --, which is not changed and ends
    after --steps. The answer is a bracket that trials have proven, a safe value below it, and how
    the peak grows. Other people's processes are never touched, and a card that they use is refused
    without --share. Ctrl-C ends the search with the best so far.
    """
    asked = cast("Asked", values)
    if asked["git_bisect"]:
        from oomdoctor.cli.bisect_git import git_bisect

        return git_bisect(values, stdin=standard_input())
    if asked["dry_run"]:
        from oomdoctor.cli.bisect_plan import planned

        write_result(
            planned(values, stdin=standard_input()), path=asked["output"], force=asked["force"]
        )
        return int(ExitCode.DONE)
    from oomdoctor.cli.bisect_run import bisected

    outcome = bisected(values, stdin=standard_input())
    hand_over(
        _rendered(outcome, asked), path=asked["output"], force=asked["force"], quiet=asked["quiet"]
    )
    if outcome.refused is not None:
        raise outcome.refused
    return int(_exit(outcome, is_of_speed=asked["objective"] != OBJECTIVES[0]))


def _exit(outcome: Outcome, *, is_of_speed: bool) -> ExitCode:
    if outcome.interrupted:
        return ExitCode.INTERRUPTED
    unanswered = is_of_speed and outcome.made.best is None
    return ExitCode.DONE if outcome.made.proven and not unanswered else ExitCode.INCONCLUSIVE


def _rendered(outcome: Outcome, asked: Asked) -> str:
    if asked["format"] == "json":
        from oomdoctor.render.bisect_json import to_json

        return to_json(outcome.made)
    from oomdoctor.cli.pages import written
    from oomdoctor.render.bisect_page import bisect_page

    return written(bisect_page(outcome.made), asked)
