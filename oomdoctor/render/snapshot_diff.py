"""What changed between two snapshots, as a page and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple
from oomdoctor.render.page import Page, Section, Table
from oomdoctor.render.snapshot_json import frame_dict
from oomdoctor.render.snapshot_top import written
from oomdoctor.render.snapshot_words import site_words
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.snapshot.balance import Balance
    from oomdoctor.snapshot.difference import Change


class Compared(NamedTuple):
    """One card before and after."""

    device: int
    before: Balance
    after: Balance
    changes: tuple[Change, ...]


def diff_page(found: Sequence[Compared], names: tuple[str, str], most: int) -> Page:
    """Return the page of what changed, of `most` rows for each card."""
    return Page(
        title=f"{names[0]} → {names[1]}",
        lead=tuple(_sentence(one) for one in found) or ("The snapshots have no card in common.",),
        sections=tuple(_section(one, most) for one in found if one.changes),
    )


def signed_size(size: int) -> str:
    """Print a difference of sizes: `+8.00 MiB`, `-1.50 GiB`."""
    return f"{'+' if size > 0 else '-' if size < 0 else ''}{format_size(abs(size))}"


def _sentence(one: Compared) -> str:
    before, after = one.before.held_bytes, one.after.held_bytes
    if not one.changes:
        return f"GPU {one.device}: both hold {format_size(after)}, each line as much."
    change = signed_size(after - before)
    held = f"{format_size(before)} before, {format_size(after)} after"
    first = one.changes[0]
    most = f"{signed_size(first.more_bytes)} by {site_words(first.site, first.category)}"
    return f"GPU {one.device}: {change} ({held}). The most: {most}."


def _section(one: Compared, most: int) -> Section:
    left = len(one.changes) - most
    return Section(
        title=f"GPU {one.device}",
        sentences=(f"{format_count(left)} more are left out; -n shows more.",) if left > 0 else (),
        table=Table(
            caption="Lines that hold more or less, the largest change first",
            headers=("change", "before", "after", "blocks", "category", "line"),
            rows=tuple(_row(change) for change in one.changes[:most]),
            numeric=frozenset({0, 1, 2, 3}),
        ),
    )


def _row(change: Change) -> tuple[str, ...]:
    return (
        signed_size(change.more_bytes),
        format_size(change.before_bytes),
        format_size(change.after_bytes),
        f"{format_count(change.before_blocks)} → {format_count(change.after_blocks)}",
        change.category,
        site_words(change.site, change.category),
    )


def diff_json(found: Sequence[Compared], most: int) -> str:
    """Return what changed as a JSON document."""
    return written(
        {
            "devices": [
                {
                    "device": one.device,
                    "before_bytes": one.before.held_bytes,
                    "after_bytes": one.after.held_bytes,
                    "changes": [
                        {
                            "frame": frame_dict(change.site.frame),
                            "category": change.category,
                            "change_bytes": change.more_bytes,
                            "before_bytes": change.before_bytes,
                            "after_bytes": change.after_bytes,
                            "before_blocks": change.before_blocks,
                            "after_blocks": change.after_blocks,
                        }
                        for change in one.changes[:most]
                    ],
                }
                for one in found
            ]
        }
    )
