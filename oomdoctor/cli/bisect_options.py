"""Options of `bisect`, and of whatever else runs trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from oomdoctor.model.trial import BACKENDS

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")
EXECUTORS = ("local", "ray")
OBJECTIVES = ("memory", "tokens-per-second")

_TRIAL = (
    click.option("--save", "saves", is_flag=True, help="Each trial also saves a checkpoint once."),
    click.option(
        "--evaluate", "evaluates", is_flag=True, help="Each trial also runs one evaluation."
    ),
    click.option(
        "--steps",
        type=click.IntRange(min=1),
        default=2,
        show_default=True,
        metavar="N",
        help="Steps of the optimizer after which a trial ends.",
    ),
    click.option(
        "--edit",
        multiple=True,
        metavar="FILE:KEY={AXIS}",
        help="Set a key in a copy of a config that the command reads; may be given again.",
    ),
    click.option(
        "--cap",
        metavar="SIZE",
        help="The most that a trial's allocator may have, such as 8GiB.  [default: the card's]",
    ),
    click.option(
        "--backend",
        type=click.Choice(BACKENDS),
        help="Where trials run.  [default: cuda where a card is, else simulate or formula]",
    ),
)
_RUN = (
    click.option(
        "--max-seconds",
        type=click.FloatRange(min=0),
        metavar="S",
        help="No trial starts after so many seconds.",
    ),
    click.option(
        "--trial-seconds",
        type=click.FloatRange(min=1),
        default=600,
        show_default=True,
        metavar="S",
        help="The longest that one trial may take.",
    ),
    click.option(
        "--max-trials", type=click.IntRange(min=1), metavar="N", help="At most so many trials."
    ),
    click.option(
        "--resume", is_flag=True, help="Go on with the last run of this command, from its journal."
    ),
    click.option(
        "--dry-run", is_flag=True, help="Show what would run and what it costs; run nothing."
    ),
    click.option(
        "--share",
        is_flag=True,
        help="Run on a card that others use, below a cap that leaves them a reserve.",
    ),
    click.option(
        "--executor",
        type=click.Choice(EXECUTORS),
        help="Run trials side by side: on all cards of this machine, or of a Ray cluster.",
    ),
)


def trial_options(function: F) -> F:
    """Add what a trial is, and how trials run."""
    for option in (*_RUN, *_TRIAL):
        function = option(function)
    return function
