"""Options of `oomdoctor lint`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from oomdoctor.cli.options import SEVERITIES, complete_code, complete_fact

if TYPE_CHECKING:
    from collections.abc import Callable

FORMATS = ("text", "json", "jsonl", "sarif", "github", "markdown", "html", "junit")

F = TypeVar("F", bound="Callable[..., object]")

_JOB = (
    click.option(
        "--fact",
        multiple=True,
        metavar="KEY=VALUE",
        shell_complete=complete_fact,
        help="Something you know, such as dist.world_size=8; outranks the files.",
    ),
    click.option(
        "--tokenizer",
        metavar="DIR",
        type=click.Path(exists=True),
        help="The tokenizer that --data is measured with.",
    ),
    click.option(
        "--data",
        multiple=True,
        metavar="FILE",
        type=click.Path(exists=True),
        help="A data set to measure; its lengths go into the rules.",
    ),
    click.option(
        "--versions",
        multiple=True,
        metavar="PKG==VERSION|FILE",
        help="Versions that the job runs with, with commas, or a requirements or lock file.",
    ),
    click.option(
        "--gpus", metavar="N", type=click.IntRange(min=1), help="How many cards the job sees."
    ),
    click.option("--gpu", metavar="NAME", help='The card, such as "RTX 4090" or "A100-80GB".'),
    click.option("--job", is_flag=True, help="All files are one job."),
)
_ACTION = (
    click.option("--explain", is_flag=True, help="Say more: why, how it is known, all fixes."),
    click.option("--watch", is_flag=True, help="Lint again whenever a file is saved."),
    click.option(
        "--unsafe", is_flag=True, help="With --fix or --diff: also what changes speed or maths."
    ),
    click.option("--fix", is_flag=True, help="Write the safe fixes into the files."),
    click.option("--diff", is_flag=True, help="Print the safe fixes as a patch; write nothing."),
    click.option(
        "-f",
        "--format",
        type=click.Choice(FORMATS),
        help="How findings are written.  [default: text; github in GitHub Actions]",
    ),
)
_POLICY = (
    click.option(
        "--write-baseline",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Accept what is found now: write it to FILE.",
    ),
    click.option(
        "--baseline",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="Findings that are known and accepted.",
    ),
    click.option(
        "--fail-on",
        type=click.Choice([*SEVERITIES, "never"]),
        help="Exit 1 if a finding is at least this severe.  [default: error]",
    ),
    click.option(
        "--ignore",
        multiple=True,
        metavar="RULE",
        shell_complete=complete_code,
        help="Leave out rules by code, start of code or name; may be given again.",
    ),
    click.option(
        "--select",
        multiple=True,
        metavar="RULE",
        shell_complete=complete_code,
        help="Only rules with that code, start of code or name; may be given again.",
    ),
)


def lint_options(function: F) -> F:
    """Add the files, what is known of the job, what to do, and what counts."""
    files = click.argument(
        "files",
        nargs=-1,
        metavar="FILE|DIR|-...",
        type=click.Path(exists=True, allow_dash=True),
    )
    for option in (*_POLICY, *_ACTION, *_JOB, files):
        function = option(function)
    return function
