"""What was held at one moment, as a page and as JSON: by line, by stack or by category."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from oomdoctor import __version__
from oomdoctor.record import NamedTuple
from oomdoctor.render.page import Page, Section, Table
from oomdoctor.render.snapshot_json import frame_dict
from oomdoctor.render.snapshot_words import blocks_words, short, site_words
from oomdoctor.render.words import percent
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.snapshot.balance import Balance
    from oomdoctor.snapshot.stacks import Frame, Stack

STACK, CATEGORY = "stack", "category"


class Row(NamedTuple):
    """One line of the list: what holds how much, its category and frames where it has some."""

    words: str
    category: str | None
    frames: tuple[Frame, ...]
    held_bytes: int
    blocks: int


class Held(NamedTuple):
    """The list of one card."""

    device: int
    balance: Balance
    rows: tuple[Row, ...]


def rows_of(balance: Balance, by: str, stacks: Sequence[Stack]) -> tuple[Row, ...]:
    """Return all rows, the largest first."""
    if by == CATEGORY:
        return tuple(
            Row(name, name, (), one.held_bytes, one.blocks) for name, one in balance.categories
        )
    if by == STACK:
        return tuple(
            Row(_stack_words(stacks[number]), None, stacks[number].frames, *share)
            for number, share in balance.stacks
        )
    return tuple(
        Row(
            site_words(one.site, one.category),
            one.category,
            () if one.site.frame is None else (one.site.frame,),
            one.held_bytes,
            one.blocks,
        )
        for one in balance.sites
    )


def _stack_words(stack: Stack) -> str:
    if not stack.frames:
        return "autograd's backward pass" if stack.backward else "no recorded stack"
    return " ← ".join(short(one) for one in stack.frames)


def top_page(found: Sequence[Held], name: str, by: str, most: int) -> Page:
    """Return the page of the lists, of `most` rows each."""
    return Page(
        title=name,
        lead=tuple(_sentence(one) for one in found) or ("Nothing was on any card.",),
        sections=tuple(_section(one, by, most) for one in found if one.rows),
    )


def _sentence(held: Held) -> str:
    balance = held.balance
    size, blocks = format_size(balance.held_bytes), blocks_words(balance.blocks)
    waits = balance.waiting.held_bytes
    more = f"; {format_size(waits)} waited for a stream" if waits else ""
    event = format_count(balance.moment)
    return f"GPU {held.device}: {size} in {blocks} before event {event}{more}."


def _section(held: Held, by: str, most: int) -> Section:
    shown, whole = held.rows[:most], held.balance.held_bytes or 1
    left = len(held.rows) - len(shown)
    return Section(
        title=f"GPU {held.device} by {by}",
        sentences=(f"{format_count(left)} more are left out; -n shows more.",) if left else (),
        table=Table(
            caption="The largest first",
            headers=("held", "share", "blocks", "category", by),
            rows=tuple(
                (
                    format_size(one.held_bytes),
                    percent(one.held_bytes / whole),
                    format_count(one.blocks),
                    one.category or "",
                    one.words,
                )
                for one in shown
            ),
            numeric=frozenset({0, 1, 2}),
        ),
    )


def top_json(found: Sequence[Held], by: str, most: int) -> str:
    """Return the lists as a JSON document."""
    return written(
        {
            "by": by,
            "devices": [
                {
                    "device": one.device,
                    "before_event": one.balance.moment,
                    "held_bytes": one.balance.held_bytes,
                    "blocks": one.balance.blocks,
                    "waiting_bytes": one.balance.waiting.held_bytes,
                    "rows": [row_dict(row) for row in one.rows[:most]],
                }
                for one in found
            ],
        }
    )


def row_dict(row: Row) -> dict[str, Any]:
    """Return a row as plain values."""
    return {
        "category": row.category,
        "frames": [frame_dict(one) for one in row.frames],
        "held_bytes": row.held_bytes,
        "blocks": row.blocks,
    }


def written(values: dict[str, Any]) -> str:
    """Return a JSON document with the version in it."""
    values |= {"schema_version": 1, "oomdoctor": __version__}
    return json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
