"""Parts of a snapshot's page: free memory, what waited, private pools, other settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.page import Section, Table
from oomdoctor.render.snapshot_words import blocks_words, outcome_words, site_words
from oomdoctor.snapshot.categories import category_of
from oomdoctor.snapshot.leaks import site_of
from oomdoctor.snapshot.lives import BEFORE
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.snapshot.balance import Balance
    from oomdoctor.snapshot.fragmentation import Pin
    from oomdoctor.snapshot.report import DeviceReport
    from oomdoctor.snapshot.stacks import Stack

MOST_ROWS = 15


def free_section(device: DeviceReport, stacks: Sequence[Stack]) -> Section | None:
    """Return what was reserved but free when a request failed, or at the end of the trace."""
    found = device.fragmentation
    if found is None:
        return None
    when = "When the request failed" if found.request_bytes is not None else "At the end"
    reserved, allocated = format_size(found.reserved_bytes), format_size(found.allocated_bytes)
    split, whole = format_size(found.split_bytes), format_size(found.whole_bytes)
    sentences = [
        f"{when}, {reserved} was reserved and {allocated} allocated.",
        f"{split} was free in segments in use (inactive split), {whole} in unused segments.",
    ]
    if found.request_bytes is not None:
        sentences.append(
            f"The request could have had {format_count(found.holes)}"
            f" hole{'' if found.holes == 1 else 's'}, the largest of"
            f" {format_size(found.largest_hole_bytes)}."
        )
    if found.private_free_bytes:
        size = format_size(found.private_free_bytes)
        sentences.append(f"{size} was free in private pools, for them alone.")
    if not found.exact:
        sentences.append("The replay differs from the recording, so sizes of holes may, too.")
    rows = tuple(_row(one, stacks, found.moment) for one in found.pins)
    return Section(
        title="What was free",
        sentences=tuple(sentences),
        table=Table(
            caption="Segments that a block pins, the most free memory first",
            headers=("free", "of segment", "blocks in it", "oldest block", "since event", "line"),
            rows=rows,
            numeric=frozenset({0, 1, 2, 3, 4}),
        )
        if rows
        else None,
    )


def _row(pin: Pin, stacks: Sequence[Stack], moment: int) -> tuple[str, ...]:
    life = pin.life
    segment = format_size(pin.segment_bytes)
    if life is None:
        return (format_size(pin.free_bytes), segment, format_count(pin.blocks), "", "", "unknown")
    stack = stacks[life.stack]
    return (
        format_size(pin.free_bytes),
        segment,
        format_count(pin.blocks),
        format_size(life.size),
        "before the first" if life.born == BEFORE else format_count(min(life.born, moment)),
        site_words(site_of(stack, life.size), category_of(life, stack)),
    )


def waiting_section(moment: Balance, what: str) -> Section | None:
    """Return what was let go but not free yet."""
    if not moment.waiting.blocks:
        return None
    size, blocks = format_size(moment.waiting.held_bytes), blocks_words(moment.waiting.blocks)
    return Section(
        title=f"What waited for a stream {what}",
        sentences=(
            f"{size} in {blocks} had been let go.",
            "Another stream still used them (record_stream), so that nobody could have them.",
        ),
        table=Table(
            caption="The lines that asked for them",
            headers=("waiting", "blocks", "line"),
            rows=tuple(
                (
                    format_size(one.held_bytes),
                    format_count(one.blocks),
                    site_words(one.site, one.category),
                )
                for one in moment.waiting_sites[:MOST_ROWS]
            ),
            numeric=frozenset({0, 1}),
        ),
    )


def pools_section(moment: Balance, what: str) -> Section | None:
    """Return what private pools held."""
    if not moment.pools:
        return None
    return Section(
        title=f"Private pools {what}",
        sentences=(
            "Pools of CUDA graphs or of torch.cuda.MemPool keep their memory to themselves.",
        ),
        table=Table(
            caption="Held from private pools",
            headers=("held", "blocks", "pool"),
            rows=tuple(
                (format_size(share.held_bytes), format_count(share.blocks), str(pool))
                for pool, share in moment.pools
            ),
            numeric=frozenset({0, 1}),
        ),
    )


def settings_section(device: DeviceReport) -> Section | None:
    """Return what other settings would have given."""
    if not device.outcomes:
        return None
    run = device.outcomes[0]
    rows = tuple(
        (
            one.settings or "(none)",
            outcome_words(one, run),
            format_size(one.peak_allocated_bytes),
            format_size(one.peak_reserved_bytes),
            format_count(one.retries),
        )
        for one in device.outcomes
    )
    size = device.capacity_bytes
    card = f"{format_size(size)} to be had" if size is not None else "as much as is asked for"
    return Section(
        title="The same requests with other settings",
        sentences=(f"Every request and free of the trace, replayed with {card}.", *_doubts(device)),
        table=Table(
            caption="The first row has the settings of the run",
            headers=("PYTORCH_CUDA_ALLOC_CONF", "outcome", "allocated", "reserved", "retries"),
            rows=rows,
            numeric=frozenset({2, 3, 4}),
        ),
    )


def _doubts(device: DeviceReport) -> list[str]:
    """Say what the replay assumes."""
    found = []
    if device.before_bytes:
        found.append(
            "What was there before the recording is laid down first, in the order of its addresses."
        )
    if any(one.fraction_set for one in device.outcomes):
        found.append(
            "Garbage collection works only with set_per_process_memory_fraction; a fraction of 1 is"
            " assumed."
        )
    return found
