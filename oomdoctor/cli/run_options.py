"""The options of `oomdoctor run`, and what they come to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypedDict, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.recorder.recording import Settings

F = TypeVar("F", bound="Callable[..., object]")
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|m|min|h|d)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(text: str) -> float:
    """Return the seconds of a time such as 90, 90s, 10m or 2h."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or not float(found[1]):
        raise click.BadParameter(f"{text!r} is no time: expected such as 90s, 10m or 2h")
    return float(found[1]) * _SECONDS[found[2] or "s"]


class Asked(TypedDict):
    """What the command line asks for."""

    command: tuple[str, ...]
    folder: str | None
    silent_after: float
    stop_after: float | None
    inject: bool
    diagnosis: bool
    quiet: bool


def run_options(function: F) -> F:
    """Add the options and the command."""
    for option in (
        click.option("-q", "--quiet", is_flag=True, help="No line at the end."),
        click.option(
            "--diagnosis/--no-diagnosis",
            default=True,
            help="Whether the run is diagnosed at its end.  [default: diagnosis]",
        ),
        click.option(
            "--inject/--no-inject",
            default=True,
            help="Whether Python processes record what they do inside.  [default: inject]",
        ),
        click.option(
            "--stop-after",
            metavar="TIME",
            type=seconds_of,
            help="End a command that prints nothing and makes no step for so long.",
        ),
        click.option(
            "--silent-after",
            metavar="TIME",
            type=seconds_of,
            default="10m",
            show_default=True,
            help="Note that it prints nothing and makes no step for so long.",
        ),
        click.option(
            "--folder",
            metavar="DIR",
            type=click.Path(file_okay=False),
            help="Where bundles are kept.  [default: $OOMDOCTOR_RUNS, else .oomdoctor/runs]",
        ),
        click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED),
    ):
        function = option(function)
    return function


def settings_of(asked: Asked) -> Settings:
    """Return how the run is recorded."""
    from oomdoctor.recorder.places import runs_folder
    from oomdoctor.recorder.recording import Settings

    return Settings(
        runs=runs_folder(asked["folder"]),
        silent_s=asked["silent_after"],
        stop_after_s=asked["stop_after"],
        inject=asked["inject"],
    )
