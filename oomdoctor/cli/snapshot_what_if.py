"""`oomdoctor snapshot what-if`: the same requests under other settings, or on another card."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import output_options, talk_options
from oomdoctor.cli.output import write_result
from oomdoctor.cli.snapshot_options import device_option, format_option

if TYPE_CHECKING:
    from oomdoctor.render.snapshot_what_if import Tried


class Asked(TypedDict):
    """What the command line asks for."""

    file: str
    alloc_conf: tuple[str, ...]
    capacity: str | None
    device: int | None
    format: str
    output: str | None
    force: bool
    color: str
    width: int | None
    quiet: bool
    verbose: bool


class WhatIf(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example(
            "oomdoctor snapshot what-if snapshot.pickle --alloc-conf expandable_segments:True",
            "would that have helped?",
        ),
        Example("oomdoctor snapshot what-if snapshot.pickle --capacity 16GiB", "on a smaller card"),
    )


@click.command("what-if", cls=WhatIf)
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--alloc-conf",
    metavar="SETTINGS",
    multiple=True,
    help="PYTORCH_CUDA_ALLOC_CONF in place of the run's; may be given again.",
)
@click.option(
    "--capacity",
    metavar="SIZE",
    help="What the process may have, such as 16GiB.  [default: as when a request failed]",
)
@device_option
@format_option
@output_options
@talk_options
def command(**values: object) -> int:
    """Replay every request and free of a snapshot through the model of the allocator.

    Exits with 1 where the requests are not met to the end under any of the settings asked for.
    """
    from oomdoctor.render.snapshot_what_if import what_if_json, what_if_page

    asked = cast("Asked", values)
    found = _tried(asked)
    if asked["format"] == "json":
        shown = what_if_json(found)
    else:
        from oomdoctor.cli.pages import written

        shown = written(what_if_page(found, asked["file"]), asked)
    write_result(shown, path=asked["output"], force=asked["force"])
    first = 1 if asked["alloc_conf"] else 0
    met = all(any(one.failure is None for one in tried.outcomes[first:]) for tried in found)
    return int(ExitCode.DONE if met else ExitCode.FINDINGS)


def _tried(asked: Asked) -> list[Tried]:
    from oomdoctor.memory.allocator_settings import read_settings
    from oomdoctor.render.snapshot_what_if import Tried
    from oomdoctor.snapshot.capacity import capacity_of
    from oomdoctor.snapshot.lives import BEFORE
    from oomdoctor.snapshot.moments import END, moments_of
    from oomdoctor.snapshot.reading import read_snapshot
    from oomdoctor.snapshot.report import tried_under
    from oomdoctor.snapshot.settings import settings_in

    wanted = [read_settings(text) for text in asked["alloc_conf"]]
    given = _size(asked["capacity"])
    snapshot = read_snapshot(asked["file"])
    run = settings_in(snapshot.settings, snapshot.devices)
    found = []
    for one in moments_of(snapshot, END, asked["device"]):
        size = given if given is not None else capacity_of(one.device)
        outcomes = tried_under(one.device, [run, *wanted], run, size)
        before = sum(life.size for life in one.lives if life.born == BEFORE)
        found.append(Tried(one.device.number, len(one.device.events), before, outcomes))
    return found


def _size(text: str | None) -> int | None:
    from oomdoctor.errors import UsageError
    from oomdoctor.units import parse_size

    if text is None:
        return None
    size = parse_size(text)
    if size is None or size.bytes <= 0:
        raise UsageError(f"{text!r} is no size", hint="write it as 16GiB or 24,000 MiB")
    return size.bytes
