"""A snapshot laid out as a page: the verdict, what grew, what was held, what was free in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.page import (
    Chart,
    ChartBar,
    Figure,
    Page,
    Section,
    Table,
)
from oomdoctor.render.snapshot_parts import (
    MOST_ROWS,
    free_section,
    pools_section,
    settings_section,
    waiting_section,
)
from oomdoctor.render.snapshot_pictures import flame_of, memory_timeline
from oomdoctor.render.snapshot_words import (
    blocks_words,
    failure_sentence,
    growth_sentence,
    short,
    site_words,
    together_sentences,
)
from oomdoctor.render.words import percent
from oomdoctor.units import format_count, format_size

if TYPE_CHECKING:
    from oomdoctor.snapshot.balance import Balance
    from oomdoctor.snapshot.report import DeviceReport, SnapshotReport

SLACK = "Bytes of blocks are what was asked for in steps of 512 B; slack is in the replayed figures"


def snapshot_page(report: SnapshotReport, name: str) -> Page:
    """Return the page of a report; `name` is the file's."""
    several = len(report.devices) > 1
    lead, figures, sections = [], [], []
    for device in report.devices:
        before = f"GPU {device.number}: " if several else ""
        found = [failure_sentence(device), growth_sentence(device)]
        lead += [f"{before}{one}" for one in found if one is not None]
        figures += [one._replace(name=before + one.name) for one in _figures(device)]
        sections += [_titled(one, before) for one in _sections(device, report) if one is not None]
    if not report.devices:
        lead.append("The snapshot has no segments and no events: nothing was on any card.")
    return Page(
        title=name,
        lead=tuple(lead),
        figures=tuple(figures),
        sections=tuple(sections),
        notes=_notes(report),
    )


def _titled(section: Section, before: str) -> Section:
    from oomdoctor.record import replace

    return replace(section, title=before + section.title) if before else section


def _figures(device: DeviceReport) -> list[Figure]:
    replay, found = device.replay, []
    if replay is not None:
        how = "replayed, as recorded" if replay.equal else "replayed; differs from the recording"
        found.append(Figure("peak allocated", format_size(replay.peak_allocated), how))
        found.append(Figure("peak reserved", format_size(replay.peak_reserved), how))
    if device.capacity_bytes is not None:
        size = format_size(device.capacity_bytes)
        found.append(Figure("to be had", size, "reserved and free when the request failed"))
    if device.before_bytes:
        size = format_size(device.before_bytes)
        found.append(Figure("before the recording", size, "no event tells where it was made"))
    found.append(Figure("events", format_count(device.events)))
    return found


def _sections(device: DeviceReport, report: SnapshotReport) -> list[Section | None]:
    moment = device.failure if device.failure is not None else device.peak
    what = "when the request failed" if device.failure is not None else "at the peak"
    return [
        _growth(device),
        _categories(device, moment, what),
        _sites(moment, what),
        _tree(moment, what, report),
        waiting_section(moment, what),
        pools_section(moment, what),
        free_section(device, report.stacks),
        settings_section(device),
    ]


def _growth(device: DeviceReport) -> Section | None:
    steps = device.steps
    if not device.suspects or steps is None:
        return None
    rows = tuple(
        (
            site_words(one.site),
            f"{format_size(round(one.slope_bytes))}",
            format_size(one.grown_bytes),
            f"{format_size(one.same_size)} ({percent(one.same_size_share)})",
            percent(one.peak_share),
        )
        for one in device.suspects[:MOST_ROWS]
    )
    first = device.suspects[0]
    called = [short(one) for one in first.stack.frames if not one.library][1:4]
    by = (f"The first was called by {', by '.join(called)}.",) if called else ()
    return Section(
        title="What grows",
        sentences=(
            f"Steps are told by {steps.shown_by}.",
            "Counted is what was held at the end of a step and of the step before.",
            *by,
            *together_sentences(device),
        ),
        table=Table(
            caption="Lines that keep more and more",
            headers=("line", "per step", "grown", "most common size", "of peak"),
            rows=rows,
            numeric=frozenset({1, 2, 3, 4}),
        ),
    )


def _categories(device: DeviceReport, moment: Balance, what: str) -> Section:
    bars = [
        ChartBar(name, share.held_bytes, f"{format_size(share.held_bytes)}")
        for name, share in moment.categories
    ]
    if moment.waiting.held_bytes:
        waits = moment.waiting.held_bytes
        bars.append(ChartBar("waiting for a stream", waits, format_size(waits), marked=True))
    size, blocks = format_size(moment.held_bytes), blocks_words(moment.blocks)
    event = f"event {format_count(moment.moment)} of {format_count(device.events)}"
    return Section(
        title=f"What was held {what}",
        sentences=(f"{size} in {blocks}, before {event}.",),
        chart=Chart(
            caption="By what the stack of the request shows",
            label="category",
            bars=tuple(bars),
            amount="held",
        )
        if bars
        else None,
        timeline=memory_timeline(device),
    )


def _sites(moment: Balance, what: str) -> Section:
    rows = tuple(
        (
            format_size(one.held_bytes),
            percent(one.held_bytes / moment.held_bytes) if moment.held_bytes else "",
            format_count(one.blocks),
            one.category,
            site_words(one.site, one.category),
        )
        for one in moment.sites[:MOST_ROWS]
    )
    left = len(moment.sites) - len(rows)
    return Section(
        title=f"Who held it {what}",
        sentences=(f"{format_count(left)} more lines are left out.",) if left else (),
        table=Table(
            caption="The lines of your own code that asked for it, the largest first",
            headers=("held", "share", "blocks", "category", "line"),
            rows=rows,
            numeric=frozenset({0, 1, 2}),
        ),
    )


def _tree(moment: Balance, what: str, report: SnapshotReport) -> Section | None:
    flame = flame_of(moment, report.stacks)
    return None if flame is None else Section(title=f"By which calls {what}", flame=flame)


def _notes(report: SnapshotReport) -> tuple[str, ...]:
    notes = [f"{SLACK}."] if report.devices else []
    if any(one.replay is None for one in report.devices):
        notes.append("The events of the trace contradict one another, so it cannot be replayed.")
    if any(one.replay is not None and not one.replay.equal for one in report.devices):
        notes.append("The model and the recording differ; `oomdoctor snapshot verify` says where.")
    if report.devices and len(report.stacks) == 1:
        notes.append(
            "No stacks were recorded: _record_memory_history(stacks='python') lets lines be named."
        )
    return tuple(notes)
