"""What other settings or another card would have given, as a page and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple
from oomdoctor.render.page import Page, Section, Table
from oomdoctor.render.snapshot_json import outcome_dict
from oomdoctor.render.snapshot_top import written
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.snapshot.what_if import Outcome

BEGINNING = "What was there before the recording is laid down first, in the order of its addresses."
FRACTION = "Garbage collection needs a memory fraction; one of 1 is assumed."


class Tried(NamedTuple):
    """What came of the requests of one card; the first outcome has the settings of the run.

    `before_bytes` were there when the recording began.
    """

    device: int
    events: int
    before_bytes: int
    outcomes: tuple[Outcome, ...]


def what_if_page(found: Sequence[Tried], name: str) -> Page:
    """Return the page of the outcomes."""
    notes = [BEGINNING] if any(one.before_bytes for one in found) else []
    if any(outcome.fraction_set for one in found for outcome in one.outcomes):
        notes.append(FRACTION)
    return Page(
        title=name,
        lead=tuple(_sentence(one) for one in found) or ("The snapshot has no trace.",),
        sections=tuple(_section(one) for one in found),
        notes=tuple(notes),
    )


def _sentence(tried: Tried) -> str:
    outcome = tried.outcomes[-1]
    size = outcome.capacity_bytes
    where = f"on {format_size(size)}" if size is not None else "without a limit"
    how = f"With {outcome.settings or 'no settings'}, {where}, GPU {tried.device}"
    reserved = format_size(outcome.peak_reserved_bytes)
    failure = outcome.failure
    if failure is None:
        return f"{how} runs to the end of the recording and reserves up to {reserved}."
    request = format_size(failure.requested_bytes)
    if failure.event < 0:
        return f"{how} cannot hold what was there before the recording: {request} is not to be had."
    events = f"event {format_count(failure.event)} of {format_count(tried.events)}"
    return f"{how} fails at {events}, at a request for {request} with {reserved} reserved at most."


def _section(tried: Tried) -> Section:
    return Section(
        title=f"GPU {tried.device}",
        table=Table(
            caption="The first row has the settings of the run",
            headers=("PYTORCH_CUDA_ALLOC_CONF", "fails at", "allocated", "reserved", "retries"),
            rows=tuple(
                (
                    one.settings or "(none)",
                    ""
                    if one.failure is None
                    else f"event {format_count(max(0, one.failure.event))}",
                    format_size(one.peak_allocated_bytes),
                    format_size(one.peak_reserved_bytes),
                    format_count(one.retries),
                )
                for one in tried.outcomes
            ),
            numeric=frozenset({1, 2, 3, 4}),
        ),
    )


def what_if_json(found: Sequence[Tried]) -> str:
    """Return the outcomes as a JSON document."""
    return written(
        {
            "devices": [
                {
                    "device": one.device,
                    "events": one.events,
                    "before_recording_bytes": one.before_bytes,
                    "outcomes": [outcome_dict(outcome) for outcome in one.outcomes],
                }
                for one in found
            ]
        }
    )
