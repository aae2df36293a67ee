"""Options that the commands on snapshots share: which moment, on which card."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")


def moment_options(function: F) -> F:
    """Add --at and --device."""
    for option in (
        device_option,
        click.option(
            "--at",
            metavar="MOMENT",
            default="peak",
            show_default=True,
            help="peak, failure (of the latest request that failed), end, or an event's number.",
        ),
    ):
        function = option(function)
    return function


def device_option(function: F) -> F:
    """Add --device."""
    return click.option(
        "--device", metavar="N", type=click.IntRange(min=0), help="Only this card.  [default: all]"
    )(function)


def format_option(function: F) -> F:
    """Add --format with the formats of a page."""
    return click.option(
        "-f",
        "--format",
        type=click.Choice(["text", "json", "markdown", "html"]),
        default="text",
        show_default=True,
        help="How the answer is written.",
    )(function)
