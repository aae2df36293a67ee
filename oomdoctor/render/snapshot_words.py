"""Sentences about a snapshot that its page and its lists share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.words import percent
from oomdoctor.snapshot.leaks import grow_together
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from oomdoctor.snapshot.leaks import Site, Suspect
    from oomdoctor.snapshot.report import DeviceReport
    from oomdoctor.snapshot.stacks import Frame
    from oomdoctor.snapshot.what_if import Outcome

KEPT_PARTS = 3


def short(frame: Frame) -> str:
    """Return a frame with the last parts of its path: `…/package/model.py:39 in forward`."""
    parts = frame.file.replace("\\", "/").split("/")
    cut = len(parts) > KEPT_PARTS + 1
    file = "…/" + "/".join(parts[-KEPT_PARTS:]) if cut else "/".join(parts)
    return f"{file}:{frame.line} in {frame.name}"


def site_words(site: Site, category: str = "") -> str:
    """Return a site as a cell of a table."""
    if site.frame is not None:
        return short(site.frame)
    return category or site.words


def blocks_words(count: int) -> str:
    """Print a number of blocks: `1 block`, `1,234 blocks`."""
    return f"{format_count(count)} block{'' if count == 1 else 's'}"


def leak_sentence(suspect: Suspect) -> str:
    """Say what a suspect keeps."""
    same = (
        f", nearly all of {format_size(suspect.same_size)}"
        if suspect.same_size_share >= 0.9
        else ""
    )
    return (
        f"{suspect.site.words} keeps {format_size(round(suspect.slope_bytes))} more in every step"
        f" (median slope): {blocks_words(suspect.blocks[-1] - suspect.blocks[0])}{same},"
        f" {format_size(suspect.grown_bytes)} over {format_count(len(suspect.blocks))} steps;"
        f" at the peak it holds {percent(suspect.peak_share)} of the memory in use."
    )


def together_sentences(device: DeviceReport) -> tuple[str, ...]:
    """Say what all suspects keep together, and what lines of the forward pass hint at."""
    if len(device.suspects) < 2:
        return ()
    slope = format_size(round(sum(one.slope_bytes for one in device.suspects)))
    lines = format_count(len(device.suspects))
    found = [f"Together {lines} lines keep {slope} more in every step."]
    if grow_together(device.suspects):
        found.append(
            "Lines of the forward pass grow together, as they do when the graph of every step is"
            " kept: a loss or an output that is stored without .item() or .detach()."
        )
    return tuple(found)


def growth_sentence(device: DeviceReport) -> str:
    """Say what is known of growth."""
    if device.suspects:
        more = " Other settings only put off the end." if device.failed_bytes is not None else ""
        return leak_sentence(device.suspects[0]) + more
    if not device.events:
        return "The snapshot has no trace, so growth cannot be told."
    if device.steps is None:
        return "Fewer than four steps are to be seen in the trace, so growth cannot be told."
    return (
        f"No line keeps more and more: {format_count(len(device.steps.ends))} passes were looked at"
        f" ({device.steps.shown_by})."
    )


def failure_sentence(device: DeviceReport) -> str | None:
    """Say why the latest failed request failed, None where none did."""
    found = device.fragmentation
    if device.failed_bytes is None:
        return None
    start = f"A request for {format_size(device.failed_bytes)} failed"
    if found is None:
        return f"{start}; why cannot be told, since the trace cannot be replayed."
    free = format_size(found.free_bytes)
    hole = format_size(found.largest_hole_bytes)
    if found.proven:
        return (
            f"{start} although {free} was free: fragmentation. The largest hole that it could have"
            f" had was {hole}, and {format_size(found.card_free_bytes or 0)} was left on the card."
        )
    return f"{start}: no more than {free} was free in all, so the memory was used up."


def outcome_words(one: Outcome, run: Outcome) -> str:
    """Say what came of the requests under other settings."""
    if one.failure is not None:
        if one.failure.event < 0:
            return "fails at the beginning"
        same = run.failure is not None and one.failure.event == run.failure.event
        where = "the same request" if same else f"event {format_count(one.failure.event)}"
        return f"fails at {where}"
    if run.failure is not None:
        return "runs to the end of the recording"
    more = one.peak_reserved_bytes - run.peak_reserved_bytes
    if not more:
        return "the run" if one is run else "reserves as much"
    return f"reserves {format_size(abs(more))} {'more' if more > 0 else 'less'}"
