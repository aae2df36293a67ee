"""`oomdoctor snapshot`: memory snapshots of PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from oomdoctor.cli.lazy import Entry, Example, LazyGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMANDS: Mapping[str, Entry] = {
    "report": Entry(
        "oomdoctor.cli.snapshot_report",
        "command",
        "Say which line leaks, what was held at the peak, and whether memory was fragmented.",
    ),
    "top": Entry(
        "oomdoctor.cli.snapshot_top",
        "command",
        "List who holds the memory at the peak, at a failed request, or at the end.",
    ),
    "diff": Entry(
        "oomdoctor.cli.snapshot_diff", "command", "Say what one snapshot holds more than another."
    ),
    "what-if": Entry(
        "oomdoctor.cli.snapshot_what_if",
        "command",
        "Replay the requests under other settings, or on another card.",
    ),
    "export": Entry(
        "oomdoctor.cli.snapshot_export",
        "command",
        "Write blocks or stacks for other programs: JSON, CSV, folded stacks, speedscope.",
    ),
    "verify": Entry(
        "oomdoctor.cli.snapshot_verify",
        "command",
        "Replay a snapshot through the allocator model and compare every address.",
    ),
}


class Snapshots(LazyGroup):
    """The group with its commands and examples."""

    entries = COMMANDS
    examples = (
        Example("oomdoctor snapshot report snapshot.pickle", "what grew, what was held, and why"),
        Example("oomdoctor snapshot verify snapshot.pickle", "does the model place all alike?"),
    )


@click.group("snapshot", cls=Snapshots)
def group() -> None:
    """Read memory snapshots that torch.cuda.memory._dump_snapshot wrote."""
